import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { lightningEnvironment } from '../../../dev/serve.ts';
import { startFacilitator } from './facilitator.ts';
import { GATEWAY_WALLET, type Gateway, startGateway } from './gateway.ts';
import type { FloodOptions } from './options.ts';
import { type Provider, startProvider } from './providers.ts';
import type { Scenario } from './scenarios.ts';
import { type Service, startService } from './service.ts';
import { flipWallets } from './wallets.ts';

/** Everything that one line of the table is played on. */
export interface Stage {
  readonly network: EmbeddedNetwork;
  readonly providers: readonly Provider[];
  /** Null where the scenario has none. */
  readonly gateway: Gateway | null;
  readonly service: Service;
  stop(): Promise<void>;
}

const PROVIDERS = 4;
/** What Arc's public endpoint bears. */
const PER_SECOND = 2;
/** The limits stay as they are by default; these are the keys that would set them. */
const LIMITS = new Set(['LIGHTNING_INVOICES_PER_MINUTE', 'LIGHTNING_INVOICES_TOTAL_PER_MINUTE']);

/** Starts a fresh chain, its providers and the service; nothing of one line reaches the next. */
export async function setStage(
  scenario: Scenario,
  { checkout, variant }: Pick<FloodOptions, 'checkout' | 'variant'>,
  logFile: string | null,
): Promise<Stage> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  const keep = <T extends { stop(): Promise<void> }>(part: T): T => {
    stops.push(() => part.stop());
    return part;
  };
  try {
    const network = keep(await startEmbeddedNetwork({ lightning: scenario.lightning }));
    const { rpc, rpcUrl: target } = network;
    const limited = { target, perSecond: PER_SECOND, refusal: variant, onSend: (raw: string) => flipWallets(rpc, raw) };
    const providers = await Promise.all(Array.from({ length: PROVIDERS }, () => startProvider(limited)));
    providers.forEach(keep);
    const gateway = scenario.gateway ? keep(await startGateway(network.chainId, network.usdc)) : null;
    const facilitator = scenario.settler === 'facilitator' ? keep(await startFacilitator(network)) : null;
    const dataDir = await mkdtemp(join(tmpdir(), 'percall-flood-'));
    stops.push(() => rm(dataDir, { recursive: true, force: true }));
    const env = {
      ...chainEnvironment(network, providers),
      ...(facilitator
        ? { SETTLER: 'facilitator', REMOTE_FACILITATOR_URL: facilitator.url }
        : { RELAYER_PRIVATE_KEY: network.relayer.privateKey }),
      ...(gateway && { GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: GATEWAY_WALLET }),
      ...lightningKeys(network),
    };
    const service = keep(await startService({ checkout, dataDir, env, logFile }));
    return { network, providers, gateway, service, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Only what must point at local things. */
function chainEnvironment(network: EmbeddedNetwork, providers: readonly Provider[]): Record<string, string> {
  return {
    NETWORK: 'custom',
    CHAIN_ID: String(network.chainId),
    RPC_URLS: providers.map(({ url }) => url).join(','),
    USDC_ADDRESS: network.usdc,
    SELLER_ADDRESS: network.seller,
  };
}

function lightningKeys({ lightning }: EmbeddedNetwork): Record<string, string> {
  if (!lightning) return {};
  return Object.fromEntries(Object.entries(lightningEnvironment(lightning)).filter(([key]) => !LIMITS.has(key)));
}
