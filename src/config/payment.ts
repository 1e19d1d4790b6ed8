import { z } from 'zod';
import { hexToBytes } from '../lib/hex.ts';
import { isLoopback } from '../lib/limits/count.ts';
import { addressOf, hasFittingCase } from '../lib/secp256k1.ts';
import { usdcOf } from './chain.ts';
import { assembleChannels, channelsEnvironment, channelsProblems } from './channels.ts';
import { assembleGateway, gatewayEnvironment, gatewayProblems } from './gateway.ts';
import { baseUrl, bearerToken, type Given, list, onOff, privateKey, type Read, unitsOf, usdc, whole } from './table.ts';

// Who is paid in USDC, by which rails and settlers, at which gas, under which limits; in which protocols; and what is
// sold at which prices.

const ZERO = `0x${'0'.repeat(40)}`;
/** Keys whose addresses must not be the seller's. */
const OWN_KEYS = [
  ['RELAYER_PRIVATE_KEY', 'the relayer’s own address', 'its key pays gas on this machine and must not hold the sales'],
  ['SELFTEST_PRIVATE_KEY', 'the self-test’s own address', 'it would pay itself, and its key would hold the sales'],
] as const;

/**
 * Why SELLER_ADDRESS cannot be paid, in at most one line. What is paid to a wrong address is lost: a mistyped digit and
 * each address that the service knows are refused. An address in one letter case has no checksum and passes.
 */
export function sellerProblems(given: Given): string[] {
  const seller = given.SELLER_ADDRESS ?? '';
  if (!/^0x[0-9a-fA-F]{40}$/.test(seller)) return [];
  const lower = seller.toLowerCase();
  if (!hasFittingCase(seller))
    return ['SELLER_ADDRESS: its letter case is not its EIP-55 checksum, so a character is mistyped (copy it again)'];
  if (lower === ZERO) return ['SELLER_ADDRESS is the zero address (nobody has its key; what is paid to it is lost)'];
  if (lower === usdcOf(given)) return ['SELLER_ADDRESS is the USDC contract (what is paid to it is lost)'];
  const own = OWN_KEYS.find(([key]) => addressBy(given[key]) === lower);
  return own ? [`SELLER_ADDRESS is ${own[1]} (${own[0]}): ${own[2]}`] : [];
}

/** The address of a key, in lower case; null without one, and for text that is no key: `describe` names that fault. */
function addressBy(key: string | undefined): string | null {
  if (key === undefined || !/^0x[0-9a-fA-F]{64}$/.test(key)) return null;
  try {
    return addressOf(hexToBytes(key as `0x${string}`));
  } catch {
    return null;
  }
}

/** Requests are bound to the origin. In production it is https, except on this machine and for play money. */
export function originProblems(given: Given): string[] {
  const origin = given.PUBLIC_ORIGIN ?? '';
  if (!URL.canParse(origin)) return [];
  const url = new URL(origin);
  const problems: string[] = [];
  if (!/^https?:\/\/[^/?#@\\]+\/?$/i.test(origin))
    problems.push('PUBLIC_ORIGIN: a scheme, a host and a port alone (no path, query, fragment or user)');
  const isPlain = url.protocol === 'http:' && given.NODE_ENV === 'production';
  if (isPlain && given.PLAY_MONEY !== 'on' && !isOnThisMachine(url.hostname))
    problems.push('PUBLIC_ORIGIN: https in production (http is for loopback hosts, and for PLAY_MONEY=on)');
  return problems;
}

function isOnThisMachine(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare.endsWith('.localhost') || isLoopback(bare);
}

export const railsEnvironment = {
  SETTLER: z.enum(['relayer', 'facilitator'], 'relayer or facilitator').default('relayer'),
  REMOTE_FACILITATOR_MODE: z.enum(['x402', 'circle'], 'x402 or circle').default('x402'),
  REMOTE_FACILITATOR_URL: baseUrl.optional(),
  REMOTE_FACILITATOR_TOKEN: bearerToken.optional(),
  REMOTE_FACILITATOR_SELLER_KEY: privateKey.optional(),
  REMOTE_FACILITATOR_TIMEOUT_MS: whole(15_000, 1, 600_000),
  EXACT: onOff('on'),
  EXACT_FROM_USD: usdc('0'),
  ...gatewayEnvironment,
  ...channelsEnvironment,
};

/** Circle's Facilitator Service, by NETWORK. */
const CIRCLE: Record<string, string> = {
  arc: 'https://api.circle.com/v1/facilitator/x402',
  'arc-testnet': 'https://api-sandbox.circle.com/v1/facilitator/x402',
};

/** What the chosen settlers lack, or have without need, one line each. */
export function railsProblems(given: Given): string[] {
  const problems: string[] = [];
  const known = CIRCLE[given.NETWORK ?? ''] !== undefined;
  if (given.SETTLER !== 'facilitator' && given.RELAYER_PRIVATE_KEY === undefined)
    problems.push('RELAYER_PRIVATE_KEY is missing');
  const circle = given.REMOTE_FACILITATOR_MODE === 'circle';
  if (given.SETTLER === 'facilitator') {
    if (given.REMOTE_FACILITATOR_URL === undefined && !(circle && known))
      problems.push('REMOTE_FACILITATOR_URL is missing (SETTLER=facilitator needs it)');
    const proofs = [given.REMOTE_FACILITATOR_TOKEN, given.REMOTE_FACILITATOR_SELLER_KEY].filter(Boolean).length;
    if (circle && proofs !== 1)
      problems.push(
        'REMOTE_FACILITATOR_TOKEN or, for a trial, REMOTE_FACILITATOR_SELLER_KEY must be set: exactly one of them ' +
          '(REMOTE_FACILITATOR_MODE=circle)',
      );
    if (!circle && given.REMOTE_FACILITATOR_SELLER_KEY !== undefined)
      problems.push('REMOTE_FACILITATOR_SELLER_KEY is set (only REMOTE_FACILITATOR_MODE=circle knows what it is for)');
  }
  problems.push(...gatewayProblems(given));
  problems.push(...channelsProblems(given));
  return problems;
}

type Environment = Read<typeof railsEnvironment>;

/** `network` is the value of NETWORK. `railsProblems` has found no problem before. */
export function assembleRails(env: Environment, network: string) {
  return {
    /** Null: our own relayer settles. */
    remote: env.SETTLER === 'facilitator' ? remoteOf(env, CIRCLE[network]) : null,
    gateway: assembleGateway(env, network),
    channels: assembleChannels(env),
    /** The least price at which the plain rail is offered, in USDC base units. Null: it is offered nowhere. */
    exactFrom: env.EXACT === 'on' ? env.EXACT_FROM_USD : null,
  };
}

/** A third party's facilitator, which settles instead of our relayer. */
function remoteOf(env: Environment, own: string | undefined) {
  return {
    /** `circle`: Circle's Facilitator Service, which has pending settlements. `x402`: any other. */
    mode: env.REMOTE_FACILITATOR_MODE,
    /** The base URL of `/settle` and `/supported`. */
    url: env.REMOTE_FACILITATOR_URL ?? own ?? '',
    /** Sent as a bearer token; null sends none. */
    token: env.REMOTE_FACILITATOR_TOKEN ?? null,
    /** The key of SELLER_ADDRESS, for Circle's trial without an API key; null otherwise. */
    sellerKey: (env.REMOTE_FACILITATOR_SELLER_KEY as `0x${string}` | undefined) ?? null,
    timeoutMs: env.REMOTE_FACILITATOR_TIMEOUT_MS,
  };
}

export type RailsConfig = Readonly<ReturnType<typeof assembleRails>>;
export type RemoteFacilitatorConfig = Readonly<ReturnType<typeof remoteOf>>;

const challengeSecret = z.string().min(32, 'at least 32 characters');

export const protocolsEnvironment = {
  MPP: onOff('off'),
  MPP_SECRET: challengeSecret.optional(),
  MPP_SECRET_PREVIOUS: challengeSecret.optional(),
};

export function assembleProtocols(env: Read<typeof protocolsEnvironment>) {
  return {
    /** Whether the USDC routes stand under `/v1/mpp` too, for MPP's method `evm`. */
    mpp: env.MPP === 'on',
    /** Signs challenges. Null: a key that the ledger keeps, so that every instance has it. */
    secret: env.MPP_SECRET ?? null,
    previousSecret: env.MPP_SECRET_PREVIOUS ?? null,
  };
}

export type ProtocolsConfig = Readonly<ReturnType<typeof assembleProtocols>>;

const USDC_AMOUNT = /^\d{1,9}(\.\d{1,6})?$/;
/** What a day without income may cost: the gas of about 2,000 lone settlements at 20 gwei. */
const DEFAULT_DAILY_GAS = '5';

export const relayerEnvironment = {
  RELAYER_GATHER_MS: whole(100, 0, 5000),
  RELAYER_BLOCK_SHARE: whole(60, 1, 100),
  RELAYER_DAILY_GAS_USDC: z
    .string()
    .refine((text) => text === 'off' || USDC_AMOUNT.test(text), 'a decimal number of USDC, or off')
    .optional(),
  RELAYER_DAILY_FAILURES_USDC: z.string().regex(USDC_AMOUNT, 'a decimal number of USDC').default('1'),
};

export function assembleRelayer(env: Read<typeof relayerEnvironment>) {
  return {
    /** While a transaction is in flight, payments wait at most this long to share the next one. */
    gatherMs: env.RELAYER_GATHER_MS,
    /** Of a block's gas, for one transaction. */
    blockSharePercent: env.RELAYER_BLOCK_SHARE,
    /** The gas budget of a UTC day; null is no limit. */
    dailyGas: dailyGasOf(env.RELAYER_DAILY_GAS_USDC),
    /** Wei a UTC day for transactions that settle nothing; null: no limit. Beyond it, accounts with code cannot buy. */
    // 0 is no limit here. RELAYER_DAILY_GAS_USDC=0 forbids any spending.
    dailyFailuresWei: weiOf(env.RELAYER_DAILY_FAILURES_USDC) || null,
  };
}

export interface DailyGas {
  /** In wei of native USDC. */
  readonly wei: bigint;
  /** Whether the day's income over the relayer may be spent too. */
  readonly plusIncome: boolean;
}

function dailyGasOf(given: string | undefined): DailyGas | null {
  if (given === 'off') return null;
  return { wei: weiOf(given ?? DEFAULT_DAILY_GAS), plusIncome: given === undefined };
}

const weiOf = (usdc: string): bigint => unitsOf(usdc, 18);

export const failuresEnvironment = {
  PAYER_FAILURES_PER_MINUTE: whole(20),
  CLIENT_FAILURES_PER_MINUTE: whole(60),
  CLIENT_FAILED_SETTLEMENTS_PER_DAY: whole(3),
  PAYER_MAX_UNKNOWN: whole(4),
  CLIENT_MAX_UNKNOWN: whole(12),
};

/** Uncharged failures a minute after which a payer or a client must wait; 0 is off. */
export function assembleFailures(env: Read<typeof failuresEnvironment>) {
  return {
    payer: env.PAYER_FAILURES_PER_MINUTE,
    client: env.CLIENT_FAILURES_PER_MINUTE,
    /** Settlements a day, of one client and of one payer, that were sent and moved no money. */
    clientSettlements: env.CLIENT_FAILED_SETTLEMENTS_PER_DAY,
  };
}

export type FailureLimits = Readonly<ReturnType<typeof assembleFailures>>;

/** Payments with an unknown outcome, from which on a payer or a client buys nothing new; 0 is off. */
export function assembleUnknown(env: Read<typeof failuresEnvironment>) {
  return { payer: env.PAYER_MAX_UNKNOWN, client: env.CLIENT_MAX_UNKNOWN };
}

export type UnknownLimits = Readonly<ReturnType<typeof assembleUnknown>>;

export const offersEnvironment = {
  PRICES: list.default([]),
  ROUTES_OFF: list.default([]),
};

/** What an operator changes in the catalogue, as given. `catalogue/offered.ts` checks it. */
export function assembleOffers(env: Read<typeof offersEnvironment>) {
  return {
    /** Such as `chain/wallet=0.004`. */
    prices: env.PRICES,
    /** Such as `web/check`. */
    routesOff: env.ROUTES_OFF,
  };
}
