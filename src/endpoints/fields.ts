import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { AppError } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { hasFittingCase } from '../lib/secp256k1.ts';
import { sourceSchema } from '../lib/service.ts';
import { orAborted } from '../lib/tasks.ts';
import { formatGwei, formatUnits } from '../lib/units.ts';
import { withoutCredentials } from '../lib/url.ts';
import type { Retrieved } from '../upstream/client/client.ts';
import type { Sources } from './sources.ts';

// What all routes share, so that one thing has one shape in every answer: members, addresses and hashes, percentages,
// the source of a live answer, the parts for which an answer does not fail, the priced detail that a free answer names.

export const DAY_SECONDS = 86_400;

/** Decimals of a percentage: a hundredth of a basis point. */
const DECIMALS = 4;

const PERCENT = /^-?\d+(\.\d{1,4})?$/;

const matching = (form: RegExp, description: string) => z.string().regex(form).meta({ description });
const decimal = (description: string) => matching(/^\d+(\.\d+)?$/, description);
const bigInteger = (description: string) => matching(/^\d+$/, description);
const count = (description: string) => z.int().nonnegative().meta({ description });

const orNull = <T extends z.ZodType>(description: string, type: T) => type.nullable().meta({ description });

/** Keeps what the type says of itself, and adds when it is null. */
const alsoNull = <T extends z.ZodType>(when: string, type: T) => orNull(`${type.description}; ${when}`, type);

/** The members of answers. The description of one that may be null says when it is. */
export const field = {
  orNull,
  alsoNull,
  object: <T extends z.ZodRawShape>(description: string, shape: T) => z.strictObject(shape).meta({ description }),
  objectOrNull: <T extends z.ZodRawShape>(description: string, shape: T) => orNull(description, z.strictObject(shape)),
  list: <T extends z.ZodRawShape>(description: string, shape: T) =>
    z.array(z.strictObject(shape)).meta({ description }),
  boolean: (description: string) => z.boolean().meta({ description }),
  booleanOrNull: (description: string) => orNull(description, z.boolean()),
  text: (description: string) => z.string().meta({ description }),
  textOrNull: (description: string) => orNull(description, z.string()),
  count,
  countOrNull: (description: string) => orNull(description, z.int().nonnegative()),
  integerOrNull: (description: string) => orNull(description, z.int()),
  numberOrNull: (description: string) => orNull(description, z.number()),
  /** Digits, with a fraction when it has one; never a float. */
  decimal,
  usdc: (description: string) => matching(/^\d+(\.\d{1,6})?$/, description),
  /** Digits, because it may be above 2^53. */
  bigInteger,
  perGas: (description: string) =>
    z.strictObject({ wei: bigInteger('In wei'), gwei: decimal('In gwei') }).meta({ description }),
  address: (description: string) => matching(/^0x[0-9a-f]{40}$/, description),
  hash: (description: string) => matching(/^0x[0-9a-f]{64}$/, description),
  at: (description: string) => count(`${description}, in Unix seconds`),
  percent: (description: string) =>
    matching(PERCENT, `${description}; in percent, at most ${DECIMALS} decimals, negative for a fall`),
  percentOfAll: (description: string) =>
    orNull(`${description}; at most ${DECIMALS} decimals`, z.string().regex(PERCENT)),
};

export const asOfBlock = field.count('The block at which the answer was read');

/** How an answer ends that was read from the chain just now. */
export const readAtFields = { asOfBlock, source: sourceSchema };

export function readAt(block: number, { chain, clock }: Pick<Sources, 'chain' | 'clock'>) {
  return { asOfBlock: block, source: chainSource(chain, clock) };
}

/** In one letter case or with a right EIP-55 checksum. It is parsed to lower case, so that equal requests are equal. */
export function addressParam(description: string) {
  return hexText(40, 'a 0x address of 40 hex digits')
    .refine(
      hasFittingCase,
      'its EIP-55 checksum is wrong, so a digit is mistyped; all in one letter case there is no checksum',
    )
    .transform(lowerCase)
    .meta({ description: `${description}; in one letter case, or with a right EIP-55 checksum` });
}

/** A transaction hash in any letter case, parsed to lower case. */
export function hashParam(description: string) {
  return hexText(64, 'a 0x transaction hash of 64 hex digits').transform(lowerCase).meta({ description });
}

function hexText(digits: number, form: string) {
  // It aborts: later rules are for texts of this form.
  return z
    .string({ error: `required: ${form}` })
    .regex(new RegExp(`^0[xX][0-9a-fA-F]{${digits}}$`), { error: form, abort: true });
}

function lowerCase(text: string): `0x${string}` {
  return text.toLowerCase() as `0x${string}`;
}

/** The `source` of an answer that was read from the chain just now. */
export function chainSource(chain: ChainClient, clock: Clock) {
  return { name: `JSON-RPC of eip155:${chain.chainId}`, url: chain.publicUrl, retrievedAt: nowSeconds(clock) };
}

export const EXAMPLE_CHAIN_SOURCE = {
  name: 'JSON-RPC of eip155:5042',
  url: 'https://rpc.mainnet.arc.io',
  retrievedAt: 1795199401,
};

export const EXAMPLE_READ_AT = { asOfBlock: 32250000, source: EXAMPLE_CHAIN_SOURCE };

export function showPerGas(wei: bigint) {
  return { wei: wei.toString(), gwei: formatGwei(wei) };
}

/** `part` of `whole` in percent, rounded once, half away from zero. `whole` must be positive. */
export function percentOf(part: bigint, whole: bigint): string {
  const size = (part < 0n ? -part : part) * 100n * 10n ** BigInt(DECIMALS);
  const rounded = (2n * size + whole) / (2n * whole);
  return formatUnits(part < 0n ? -rounded : rounded, DECIMALS);
}

export function roundTo(decimals: number, value: number): number {
  return Math.round(value * 10 ** decimals) / 10 ** decimals;
}

export function roundOrNull(decimals: number, value: number | null): number | null {
  return value === null ? null : roundTo(decimals, value);
}

/** What is null or incomplete although the call succeeded. */
export const missingField = field.list(
  'Members that are null or incomplete, each with the reason; empty when there are none',
  {
    field: z.string().meta({ description: 'The member that is null or incomplete' }),
    reason: z.string().meta({ description: 'What its source did, or why this service does not have it' }),
  },
);

export type Missing = z.output<typeof missingField>;

export function missingWhen(
  entries: readonly (readonly [isMissing: boolean, field: string, reason: string])[],
): Missing {
  return entries.flatMap(([isMissing, field, reason]) => (isMissing ? [{ field, reason }] : []));
}

const WAIT_MS = 2500;

type Part<T> = (signal: AbortSignal) => Promise<T>;

interface Gathered<T> {
  readonly parts: { readonly [K in keyof T]: T[K] | null };
  readonly missing: Missing;
}

/**
 * Reads an answer's optional parts at once, each under its member's name. A source that fails, or takes longer than
 * 2.5 s, makes its part null and is listed in `missing`. Rejects when the caller aborts, and with a bug.
 */
export async function gatherParts<T extends Record<string, unknown>>(
  tasks: { readonly [K in keyof T]: Part<T[K]> },
  signal: AbortSignal,
): Promise<Gathered<T>> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new AppError(502, 'upstream_failed', 'took too long')), WAIT_MS);
  const within = AbortSignal.any([signal, late.signal]);
  const missing: Missing = [];
  const read = async <K extends keyof T & string>(field: K) => {
    try {
      return [field, await orAborted(tasks[field](within), within)] as const;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AppError)) throw error;
      missing.push({ field, reason: error.message });
      return [field, null] as const;
    }
  };
  try {
    const parts = Object.fromEntries(await Promise.all(Object.keys(tasks).map(read)));
    return { parts: parts as Gathered<T>['parts'], missing };
  } finally {
    clearTimeout(timer);
  }
}

export const detailField = field.object('The priced detail of this free summary', {
  path: z.string().meta({ description: 'The priced route; the same is sold in bitcoin below /v1/lightning' }),
  priceUsd: z.string().meta({ description: 'What a call of it costs' }),
  adds: z.string().meta({ description: 'What it says beyond this answer' }),
});

/** Throws for a free endpoint. */
export function paidDetail<S>({ path, price }: Endpoint<S>, adds: string): z.output<typeof detailField> {
  if (price === null) throw new Error(`${path} is free`);
  return { path: `/v1/paid${path}`, priceUsd: price.usd, adds };
}

/** Endpoints take the URL from here: a mirror's may hold its operator's credentials. */
export function readFrom({ url, retrievedAtMs }: Retrieved) {
  return { url: withoutCredentials(url), retrievedAt: Math.floor(retrievedAtMs / 1000) };
}
