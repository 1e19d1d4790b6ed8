import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { AppError } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { hasFittingCase } from '../lib/secp256k1.ts';
import { orAborted } from '../lib/tasks.ts';
import { formatGwei, formatUnits } from '../lib/units.ts';

// The words that all routes share, so that one thing has one shape in every answer:
// 1. groups and lists of members, numbers and texts;
// 2. addresses, hashes, times and blocks, in answers and in the query;
// 3. percentages;
// 4. the members that are null or incomplete, and the parts for which an answer does not fail;
// 5. the priced detail that a free answer names.

export const DAY_SECONDS = 86_400;

/** Members that belong together. */
export function objectField<T extends z.ZodRawShape>(description: string, shape: T) {
  return z.strictObject(shape).meta({ description });
}

/** Such members, or null where the description says so. */
export function objectOrNull<T extends z.ZodRawShape>(description: string, shape: T) {
  return z.strictObject(shape).nullable().meta({ description });
}

/** A list of entries that all have these members. */
export function listField<T extends z.ZodRawShape>(description: string, shape: T) {
  return z.array(z.strictObject(shape)).meta({ description });
}

/** A count, a size or another whole number that is never negative. */
export function countField(description: string) {
  return z.int().nonnegative().meta({ description });
}

/** Such a number, or null where the description says so. */
export function countOrNull(description: string) {
  return z.int().nonnegative().nullable().meta({ description });
}

/** A whole number of either sign, or null where the description says so. */
export function integerOrNull(description: string) {
  return z.int().nullable().meta({ description });
}

/** A number that may have a fraction, or null where the description says so. */
export function numberOrNull(description: string) {
  return z.number().nullable().meta({ description });
}

/** A text, or null where the description says so. */
export function textOrNull(description: string) {
  return z.string().nullable().meta({ description });
}

/** An exact amount as digits, with a fraction when it has one; never a float. */
export function decimal(description: string) {
  return z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .meta({ description });
}

/** An amount of USDC, which has six decimals. */
export function usdcField(description: string) {
  return z
    .string()
    .regex(/^\d+(\.\d{1,6})?$/)
    .meta({ description });
}

/** A whole number as digits, because it may be above 2^53. */
export function bigInteger(description: string) {
  return z.string().regex(/^\d+$/).meta({ description });
}

/** An exact amount for a unit of gas. */
export function perGasField(description: string) {
  return objectField(description, { wei: bigInteger('In wei'), gwei: decimal('In gwei') });
}

export function showPerGas(wei: bigint) {
  return { wei: wei.toString(), gwei: formatGwei(wei) };
}

/** 20 bytes in lower case. */
export function addressField(description: string) {
  return z
    .string()
    .regex(/^0x[0-9a-f]{40}$/)
    .meta({ description });
}

/** 32 bytes in lower case. */
export function hashField(description: string) {
  return z
    .string()
    .regex(/^0x[0-9a-f]{64}$/)
    .meta({ description });
}

/** Unix seconds. */
export function atField(description: string) {
  return countField(`${description}, in Unix seconds`);
}

export const asOfBlock = countField('The block at which the answer was read');

/**
 * An address in the query: in one letter case, or with a right EIP-55 checksum.
 * It is parsed to lower case, so that equal requests have equal parameters.
 */
export function addressParam(description: string) {
  return hexText(40, 'a 0x address of 40 hex digits')
    .refine(
      hasFittingCase,
      'its EIP-55 checksum is wrong, so a digit is mistyped; all in one letter case there is no checksum',
    )
    .transform(lowerCase)
    .meta({ description: `${description}; in one letter case, or with a right EIP-55 checksum` });
}

/** A transaction hash in the query, in any letter case, parsed to lower case. */
export function hashParam(description: string) {
  return hexText(64, 'a 0x transaction hash of 64 hex digits').transform(lowerCase).meta({ description });
}

function hexText(digits: number, form: string) {
  // It aborts, because the rules after it are for texts of this form.
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

/** Such a source in the documented examples. */
export const EXAMPLE_CHAIN_SOURCE = {
  name: 'JSON-RPC of eip155:5042',
  url: 'https://rpc.mainnet.arc.io',
  retrievedAt: 1795199401,
};

/** Of a percentage: a hundredth of a basis point. */
const DECIMALS = 4;

const percent = z.string().regex(/^-?\d+(\.\d{1,4})?$/);

/** A percentage with its sign; `description` says of what. */
export function percentField(description: string) {
  return percent.meta({ description: `${description}; in percent, at most ${DECIMALS} decimals, negative for a fall` });
}

export function percentOfAllField(description: string) {
  return percent.nullable().meta({ description: `${description}; at most ${DECIMALS} decimals` });
}

/** `part` of `whole` in percent, rounded once, half away from zero. `whole` must be positive. */
export function percentOf(part: bigint, whole: bigint): string {
  const size = (part < 0n ? -part : part) * 100n * 10n ** BigInt(DECIMALS);
  const rounded = (2n * size + whole) / (2n * whole);
  return formatUnits(part < 0n ? -rounded : rounded, DECIMALS);
}

/** What is null or incomplete although the call succeeded. */
export const missingField = listField(
  'Members that are null or incomplete, each with the reason; empty when there are none',
  {
    field: z.string().meta({ description: 'The member that is null or incomplete' }),
    reason: z.string().meta({ description: 'What its source did, or why this service does not have it' }),
  },
);

export type Missing = z.output<typeof missingField>;

/** The entries whose condition holds. */
export function missingWhen(
  entries: readonly (readonly [isMissing: boolean, field: string, reason: string])[],
): Missing {
  return entries.flatMap(([isMissing, field, reason]) => (isMissing ? [{ field, reason }] : []));
}

/** How long an answer waits for its optional parts, which run at once. */
const WAIT_MS = 2500;

type Part<T> = (signal: AbortSignal) => Promise<T>;

interface Gathered<T> {
  readonly parts: { readonly [K in keyof T]: T[K] | null };
  readonly missing: Missing;
}

/**
 * Reads the optional parts of an answer at once, each under the name of its member.
 * A source that fails, or takes longer than 2.5 s, makes its own part null and is listed in `missing`.
 * Rejects with the signal's reason when the caller aborts, and with any error that is a bug.
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

/** Where a free summary's detail is sold. */
export const detailField = objectField('The priced detail of this free summary', {
  path: z.string().meta({ description: 'The priced route; the same is sold in bitcoin below /v1/lightning' }),
  priceUsd: z.string().meta({ description: 'What a call of it costs' }),
  adds: z.string().meta({ description: 'What it says beyond this answer' }),
});

/** The link to a priced endpoint, with the path and price of its own declaration. Throws for a free endpoint. */
export function paidDetail<S>({ path, price }: Endpoint<S>, adds: string): z.output<typeof detailField> {
  if (price === null) throw new Error(`${path} is free`);
  return { path: `/v1/paid${path}`, priceUsd: price.usd, adds };
}
