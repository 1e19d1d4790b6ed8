import { hexToBytes } from '../lib/hex.ts';
import { isLoopback } from '../lib/limits/count.ts';
import { addressOf, hasFittingCase } from '../lib/secp256k1.ts';
import { usdcOf } from './chain.ts';
import { key, needed, optional, type Rule, table } from './table.ts';
import { address, httpUrl, list, listOf, oneOf, onOff, privateKey, text } from './values.ts';

// What a seller must set, and what most set.

/** Keys whose addresses must not be the seller's. */
const OWN_KEYS = [
  ['RELAYER_PRIVATE_KEY', 'the relayer’s own address', 'its key pays gas on this machine and must not hold the sales'],
  ['SELFTEST_PRIVATE_KEY', 'the self-test’s own address', 'it would pay itself, and its key would hold the sales'],
] as const;

/**
 * What is paid to a wrong address is lost: a mistyped digit and each address that the service knows are refused. An
 * address in one letter case has no checksum and passes.
 */
const isPayable: Rule = (given) => {
  const seller = given.SELLER_ADDRESS ?? '';
  if (!address.safeParse(seller).success) return false;
  if (!hasFittingCase(seller))
    return 'SELLER_ADDRESS: its letter case is not its EIP-55 checksum, so a character is mistyped (copy it again)';
  const lower = seller.toLowerCase();
  if (/^0x0+$/.test(lower))
    return 'SELLER_ADDRESS is the zero address (nobody has its key; what is paid to it is lost)';
  if (lower === usdcOf(given)) return 'SELLER_ADDRESS is the USDC contract (what is paid to it is lost)';
  const own = OWN_KEYS.find(([name]) => addressBy(given[name]) === lower);
  return own !== undefined && `SELLER_ADDRESS is ${own[1]} (${own[0]}): ${own[2]}`;
};

/** The address of a key, in lower case; null without one, and for text that is no key, which has a line of its own. */
function addressBy(given: string | undefined): string | null {
  const { data } = privateKey.safeParse(given);
  try {
    return data === undefined ? null : addressOf(hexToBytes(data));
  } catch {
    return null;
  }
}

const PRODUCTION = 'production needs the public address for its challenges';
const originIsSet = needed(['PUBLIC_ORIGIN'], ({ NODE_ENV }) => NODE_ENV === 'production' && PRODUCTION);

const originIsAlone: Rule = ({ PUBLIC_ORIGIN = '' }) =>
  URL.canParse(PUBLIC_ORIGIN) &&
  !/^https?:\/\/[^/?#@\\]+\/?$/i.test(PUBLIC_ORIGIN) &&
  'PUBLIC_ORIGIN: a scheme, a host and a port alone (no path, query, fragment or user)';

/** Requests are bound to the origin. */
const originIsHttps: Rule = ({ NODE_ENV, PLAY_MONEY, PUBLIC_ORIGIN = '' }) => {
  const url = URL.parse(PUBLIC_ORIGIN);
  if (url?.protocol !== 'http:' || NODE_ENV !== 'production' || PLAY_MONEY === 'on') return false;
  const bare = url.hostname.replace(/^\[|\]$/g, '');
  const isOnThisMachine = bare === 'localhost' || bare.endsWith('.localhost') || isLoopback(bare);
  return !isOnThisMachine && 'PUBLIC_ORIGIN: https in production (http is for loopback hosts, and for PLAY_MONEY=on)';
};

export const SELLER = table('What a seller sets', [...originIsSet, isPayable, originIsAlone, originIsHttps], {
  mode: key('NODE_ENV', text(/./, 'a word'), 'development')`production wherever real money is taken: PUBLIC_ORIGIN is
    then required, and the embedded network is never used.`,
  network: key('NETWORK', oneOf('arc', 'arc-testnet', 'custom'))`custom needs CHAIN_ID, RPC_URLS and USDC_ADDRESS.`,
  rpcUrls: key('RPC_URLS', listOf(httpUrl), '')`Comma-separated JSON-RPC URLs, tried in order. They replace the
    network's public ones. API keys in them are never logged or served. Two hosts must agree that a payment moved
    money. So name three or more that share no operator; with two, both must answer.`,
  publicOrigin: optional('PUBLIC_ORIGIN', httpUrl)`Scheme, host and port at which buyers reach the service,
    without a path, e.g. https://api.example.com. Default: http://HOST:PORT. In production https, except for loopback
    hosts and with PLAY_MONEY=on.`,
  address: key('SELLER_ADDRESS', address)`The address that buyers pay to. The service does not need its key; keep the
    key elsewhere. A wrong EIP-55 checksum, the zero address, the USDC contract and the addresses of this service's own
    keys are refused. Use one ledger for this address on a network. A second service with its own ledger would sell for
    the same payments again.`,
  relayerPrivateKey: optional('RELAYER_PRIVATE_KEY', privateKey)`Key of the account that submits settlements and pays
    their gas (in USDC on Arc). It never holds the sales: fund it with little. SETTLER=facilitator needs none.`,
  offers: {
    prices: key('PRICES', list, '')`Other prices than the catalogue's, in USD: ROUTE=PRICE between commas, e.g.
      chain/wallet=0.004,fees/estimate=0.001. \`GET /v1/paid\` lists the routes.`,
    routesOff: key('ROUTES_OFF', list, '')`Routes that are not sold, between commas, e.g. web/check,market/prices: not
      in USDC, not over Lightning, not as tools. A free route of the path stays.`,
  },
  channels: key('CHANNELS', onOff, 'off')`on: offers payment channels (x402's batch-settlement): a buyer deposits once
    and signs a voucher for each call. It needs RELAYER_PRIVATE_KEY, which sends the deposits, claims and refunds.
    Channels are offered only on a chain where the scheme's contracts stand; \`/readyz\` says so.`,
  authorizerKey: optional('CHANNELS_AUTHORIZER_KEY', privateKey)`Key that signs claims and refunds for SELLER_ADDRESS.
    It needs no money; use a key of its own. Its address is part of every channel: with another key the old channels
    can no longer be used here. Keep it as long as channels hold money (docs/operating.md).`,
  receiver: key('LIGHTNING_RECEIVER', oneOf('none', 'lnd', 'cln', 'phoenixd', 'nwc'), 'none')`The receiving node; its
    address and credentials stand under Lightning. none: the Lightning routes answer 503; the facilitator still works.`,
});
