import { z } from 'zod';
import { baseUrl, type Given, type Read, whole } from './table.ts';

// Through which node is sold over Lightning, and how many invoices are made.

export type ReceiverConfig =
  | { readonly kind: 'lnd'; readonly url: string; readonly macaroon: string; readonly tlsCertFile: string | null }
  | { readonly kind: 'cln'; readonly url: string; readonly rune: string; readonly tlsCertFile: string | null }
  | { readonly kind: 'phoenixd'; readonly url: string; readonly password: string }
  | { readonly kind: 'nwc'; readonly connection: string };

const secret = z.string().min(1);

export const lightningEnvironment = {
  LIGHTNING_RECEIVER: z
    .enum(['none', 'lnd', 'cln', 'phoenixd', 'nwc'], 'one of none, lnd, cln, phoenixd, nwc')
    .default('none'),
  LIGHTNING_NETWORK: z.enum(['mainnet', 'testnet'], 'mainnet or testnet').default('mainnet'),
  LIGHTNING_NODE_URL: baseUrl.optional(),
  LIGHTNING_NODE_TLS_CERT: z.string().min(1).optional(),
  LIGHTNING_NODE_KEY: z
    .string()
    .regex(/^0[23][0-9a-f]{64}$/, 'a compressed public key of 66 lower-case hex digits')
    .optional(),
  LIGHTNING_NODE_SHARED: z.enum(['true', 'false'], 'true or false').default('false'),
  LND_MACAROON: z
    .string()
    .regex(/^(?:[0-9a-fA-F]{2})+$/, 'the macaroon as hex digits')
    .optional(),
  // It is sent in a header unchanged.
  CLN_RUNE: secret.regex(/^[\w=-]+$/, 'the rune as the node printed it').optional(),
  PHOENIXD_PASSWORD: secret.optional(),
  NWC_CONNECTION: z
    .string()
    .refine(isWalletConnection, 'a nostr+walletconnect:// connection with the wallet, a ws or wss relay and a secret')
    .optional(),
  LIGHTNING_INVOICES_PER_MINUTE: whole(30),
  LIGHTNING_INVOICES_TOTAL_PER_MINUTE: whole(600),
  LIGHTNING_TIMEOUT_MS: whole(5000, 1),
};

/** NIP-47: 32 bytes of hex for the wallet and for the secret, and the relays' URLs. */
function isWalletConnection(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'nostr+walletconnect:' || !/^[0-9a-f]{64}$/.test(url.host)) return false;
  const relays = url.searchParams.getAll('relay');
  const reachable = relays.every((relay) => /^wss?:$/.test(URL.parse(relay)?.protocol ?? ''));
  return relays.length > 0 && reachable && /^[0-9a-f]{64}$/.test(url.searchParams.get('secret') ?? '');
}

const NEEDS: Record<string, readonly string[]> = {
  lnd: ['LIGHTNING_NODE_URL', 'LND_MACAROON'],
  cln: ['LIGHTNING_NODE_URL', 'CLN_RUNE'],
  phoenixd: ['LIGHTNING_NODE_URL', 'PHOENIXD_PASSWORD'],
  nwc: ['NWC_CONNECTION'],
};

/** Missing settings of the chosen receiver, one line each. */
export function lightningProblems(given: Given): string[] {
  const kind = given.LIGHTNING_RECEIVER ?? 'none';
  const missing = (NEEDS[kind] ?? []).filter((key) => given[key] === undefined);
  return missing.map((key) => `${key} is missing (LIGHTNING_RECEIVER=${kind} needs it)`);
}

type Environment = Read<typeof lightningEnvironment>;

/** `lightningProblems` has found no problem before. */
export function assembleLightning(env: Environment) {
  return {
    network: env.LIGHTNING_NETWORK,
    /** Null: nothing is sold over Lightning. */
    receiver: receiverOf(env),
    /** Its public key, 66 hex characters; null accepts the one that the node reports. */
    nodeKey: env.LIGHTNING_NODE_KEY ?? null,
    /** Others make invoices with the node's key too: only recorded ones count, and the node confirms each payment. */
    shared: env.LIGHTNING_NODE_SHARED === 'true',
    /** New invoices of one client and of all; 0 is off. */
    invoicesPerMinute: { client: env.LIGHTNING_INVOICES_PER_MINUTE, total: env.LIGHTNING_INVOICES_TOTAL_PER_MINUTE },
    timeoutMs: env.LIGHTNING_TIMEOUT_MS,
  };
}

export type LightningConfig = Readonly<ReturnType<typeof assembleLightning>>;

function receiverOf(env: Environment): ReceiverConfig | null {
  const { LIGHTNING_NODE_URL: url = '', LIGHTNING_NODE_TLS_CERT: tlsCertFile = null } = env;
  switch (env.LIGHTNING_RECEIVER) {
    case 'lnd':
      return { kind: 'lnd', url, macaroon: env.LND_MACAROON ?? '', tlsCertFile };
    case 'cln':
      return { kind: 'cln', url, rune: env.CLN_RUNE ?? '', tlsCertFile };
    case 'phoenixd':
      return { kind: 'phoenixd', url, password: env.PHOENIXD_PASSWORD ?? '' };
    case 'nwc':
      return { kind: 'nwc', connection: env.NWC_CONNECTION ?? '' };
    default:
      return null;
  }
}
