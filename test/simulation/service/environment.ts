import type { Scenario } from '../run/scenario.ts';
import type { Accounts } from '../world/accounts.ts';
import type { Chain } from '../world/chain/chain.ts';
import { toHex } from '../world/chain/keys.ts';
import { USDC } from '../world/chain/token.ts';
import type { Facilitator } from '../world/facilitator.ts';
import { GATEWAY_WALLET, type Gateway } from '../world/gateway.ts';
import { type LightningNode, MACAROON } from '../world/lightning.ts';
import type { Providers } from '../world/providers.ts';

/** Where buyers reach the service, whichever instance answers. */
export const PUBLIC_ORIGIN = 'http://percall.test';
/** The shortest that the settlement contract takes. */
export const WITHDRAW_DELAY_SECONDS = 900;

interface EnvironmentOptions {
  readonly scenario: Scenario;
  readonly name: string;
  readonly dataDir: string;
  readonly chain: Chain;
  readonly providers: Providers;
  readonly gateway: Gateway;
  readonly facilitator: Facilitator;
  readonly lightning: LightningNode;
  readonly accounts: Accounts;
}

/** What an operator would write into the environment of this instance. */
export function environmentOf(options: EnvironmentOptions): Record<string, string> {
  const { scenario, dataDir, chain, providers, accounts, name } = options;
  const isRelayed = scenario.settler === 'relayer';
  return {
    NETWORK: 'custom',
    CHAIN_ID: String(chain.chainId),
    USDC_ADDRESS: USDC,
    RPC_URLS: providers.urls.join(','),
    SELLER_ADDRESS: accounts.seller.address,
    PUBLIC_ORIGIN,
    DATA_DIR: dataDir,
    COLLECTOR: 'off',
    RELAYER_DAILY_GAS_USDC: 'off',
    ...(isRelayed && { RELAYER_PRIVATE_KEY: toHex(accounts.relayer.privateKey) }),
    ...(!isRelayed && facilitatorEnvironment(options)),
    ...(scenario.gateway && {
      GATEWAY: 'on',
      GATEWAY_URL: options.gateway.origin,
      GATEWAY_WALLET_ADDRESS: GATEWAY_WALLET,
    }),
    ...(scenario.lightning !== 'off' && lightningEnvironment(options)),
    ...(scenario.channels && {
      CHANNELS: 'on',
      CHANNELS_AUTHORIZER_KEY: toHex(accounts.authorizer.privateKey),
      CHANNELS_WITHDRAW_DELAY_SECONDS: String(WITHDRAW_DELAY_SECONDS),
    }),
    UPSTREAM_DNS_URL: 'http://dns.test/resolve',
    UPSTREAM_DNS_FALLBACK_URL: 'http://dns.test/other',
    // The twin has a ledger of its own.
    ...(scenario.instances > 1 && name !== 'twin' && { LEDGER_URL: 'postgres://ledger.test/percall' }),
    ...scenario.env,
  };
}

function facilitatorEnvironment({ scenario, facilitator }: EnvironmentOptions): Record<string, string> {
  const isCircle = scenario.settler === 'circle';
  return {
    SETTLER: 'facilitator',
    REMOTE_FACILITATOR_URL: facilitator.origin,
    REMOTE_FACILITATOR_MODE: isCircle ? 'circle' : 'x402',
    ...(isCircle && { REMOTE_FACILITATOR_TOKEN: 'simulated-circle-token' }),
  };
}

function lightningEnvironment({ scenario, lightning }: EnvironmentOptions): Record<string, string> {
  return {
    LIGHTNING_RECEIVER: 'lnd',
    LIGHTNING_NODE_URL: lightning.origin,
    LND_MACAROON: MACAROON,
    LIGHTNING_NODE_KEY: lightning.key,
    LIGHTNING_NODE_SHARED: String(scenario.lightning === 'shared'),
    UPSTREAM_COINBASE_URL: 'http://coinbase.test',
    UPSTREAM_KRAKEN_URL: 'http://kraken.test',
    UPSTREAM_BITSTAMP_URL: 'http://bitstamp.test',
  };
}
