import { z } from 'zod';
import { baseUrl, onOff, whole } from './table.ts';

// What is sold over Lightning and through which node, and the limits of the facilitator.

export type ReceiverConfig =
  | { readonly kind: 'lnd'; readonly url: string; readonly macaroon: string; readonly tlsCertFile: string | null }
  | { readonly kind: 'cln'; readonly url: string; readonly rune: string; readonly tlsCertFile: string | null }
  | { readonly kind: 'phoenixd'; readonly url: string; readonly password: string }
  | { readonly kind: 'nwc'; readonly connection: string };

export interface LightningConfig {
  readonly network: 'mainnet' | 'testnet';
  /** Null: nothing is sold over Lightning. */
  readonly receiver: ReceiverConfig | null;
  /** Its public key, 66 hex characters; null accepts the one that the node reports. */
  readonly nodeKey: string | null;
  /** Others can make invoices with the node's key too: only recorded ones count, and the node confirms each payment. */
  readonly shared: boolean;
  /** New invoices of one client and of all; 0 is off. */
  readonly invoicesPerMinute: { readonly client: number; readonly total: number };
  readonly timeoutMs: number;
}

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
export function lightningProblems(given: Record<string, string | undefined>): string[] {
  const kind = given.LIGHTNING_RECEIVER ?? 'none';
  const missing = (NEEDS[kind] ?? []).filter((key) => given[key] === undefined);
  return missing.map((key) => `${key} is missing (LIGHTNING_RECEIVER=${kind} needs it)`);
}

type Environment = z.output<z.ZodObject<typeof lightningEnvironment>>;

/** `lightningProblems` has found no problem before. */
export function assembleLightning(env: Environment): LightningConfig {
  return {
    network: env.LIGHTNING_NETWORK,
    receiver: receiverOf(env),
    nodeKey: env.LIGHTNING_NODE_KEY ?? null,
    shared: env.LIGHTNING_NODE_SHARED === 'true',
    invoicesPerMinute: {
      client: env.LIGHTNING_INVOICES_PER_MINUTE,
      total: env.LIGHTNING_INVOICES_TOTAL_PER_MINUTE,
    },
    timeoutMs: env.LIGHTNING_TIMEOUT_MS,
  };
}

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

export interface ProtocolsConfig {
  /** Whether the USDC routes stand under `/v1/mpp` too, for MPP's method `evm`. */
  readonly mpp: boolean;
  /** Signs challenges. Null: a key that the ledger keeps, so that every instance has it. */
  readonly secret: string | null;
  readonly previousSecret: string | null;
}

const challengeSecret = z.string().min(32, 'at least 32 characters');

export const protocolsEnvironment = {
  MPP: onOff('off'),
  MPP_SECRET: challengeSecret.optional(),
  MPP_SECRET_PREVIOUS: challengeSecret.optional(),
};

type ProtocolsEnvironment = z.output<z.ZodObject<typeof protocolsEnvironment>>;

export function assembleProtocols(env: ProtocolsEnvironment): ProtocolsConfig {
  return { mpp: env.MPP === 'on', secret: env.MPP_SECRET ?? null, previousSecret: env.MPP_SECRET_PREVIOUS ?? null };
}

/** The facilitator's limits, which its descriptor publishes. */
export interface FacilitatorConfig {
  /** Settle calls a minute of a client, and four times as many of an IPv6 site; 0 is off. */
  readonly perMinute: number;
  /** Claims a UTC day of all clients. `facilitator/limits.ts` has the parts of a client and of payees. */
  readonly dailyCap: number;
  /** The longest `maxTimeoutSeconds` that is settled. */
  readonly maxTimeoutSeconds: number;
}

export const facilitatorEnvironment = {
  FACILITATOR_PER_MINUTE: whole(60),
  FACILITATOR_DAILY_CAP: whole(20_000, 1),
  FACILITATOR_MAX_TIMEOUT: whole(3600, 1),
};

export function assembleFacilitator(env: z.output<z.ZodObject<typeof facilitatorEnvironment>>): FacilitatorConfig {
  return {
    perMinute: env.FACILITATOR_PER_MINUTE,
    dailyCap: env.FACILITATOR_DAILY_CAP,
    maxTimeoutSeconds: env.FACILITATOR_MAX_TIMEOUT,
  };
}
