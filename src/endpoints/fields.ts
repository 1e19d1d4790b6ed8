import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { AppError } from '../errors.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { hasFittingCase } from '../lib/secp256k1.ts';
import { orAborted } from '../lib/tasks.ts';
import { formatGwei, formatUnits } from '../lib/units.ts';

/** A count, a size or another whole number that is never negative. */
export function countField(description: string) {
  return z.int().nonnegative().meta({ description });
}

/** Such a number, or null. The description says when. */
export function countOrNull(description: string) {
  return z.int().nonnegative().nullable().meta({ description });
}

/** A text, or null. The description says when. */
export function textOrNull(description: string) {
  return z.string().nullable().meta({ description });
}

/** An exact amount as digits, with a fraction when it has one. Never a float. */
export function decimal(description: string) {
  return z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .meta({ description });
}

/** An amount of USDC. USDC has six decimals, so none is shown with more. */
export function usdcField(description: string) {
  return z
    .string()
    .regex(/^\d+(\.\d{1,6})?$/)
    .meta({ description });
}

/** A whole number as digits, because it may exceed 2^53. */
export function bigInteger(description: string) {
  return z.string().regex(/^\d+$/).meta({ description });
}

/** An amount for a unit of gas, exact. */
export function perGasField(description: string) {
  return z.strictObject({ wei: bigInteger('In wei'), gwei: decimal('In gwei') }).meta({ description });
}

/** Converts wei into that shape. */
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

/** The block at which every figure of a live answer was read. */
export const asOfBlock = countField('The block at which the answer was read');

/**
 * An address in the query: in lower case, in upper case, or with EIP-55's checksum, which must be right. It is parsed to lower case, so that equal
 * requests have equal parameters.
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

/** A transaction hash in the query, in any letter case; parsed to lower case. */
export function hashParam(description: string) {
  return hexText(64, 'a 0x transaction hash of 64 hex digits').transform(lowerCase).meta({ description });
}

function hexText(digits: number, form: string) {
  // The rules after this one are for texts of this form.
  return z
    .string({ error: `required: ${form}` })
    .regex(new RegExp(`^0[xX][0-9a-fA-F]{${digits}}$`), { error: form, abort: true });
}

function lowerCase(text: string): `0x${string}` {
  return text.toLowerCase() as `0x${string}`;
}

/** The `source` member of an answer that was read from the chain just now. */
export function chainSource(chain: ChainClient, clock: Clock) {
  return { name: `JSON-RPC of eip155:${chain.chainId}`, url: chain.publicUrl, retrievedAt: nowSeconds(clock) };
}

/** Four decimals of a percent: a hundredth of a basis point. */
const DECIMALS = 4;

const percent = z.string().regex(/^-?\d+(\.\d{1,4})?$/);

/** A percentage with its sign. `description` says what it is a percentage of. */
export function percentField(description: string) {
  return percent.meta({ description: `${description}; in percent, at most ${DECIMALS} decimals, negative for a fall` });
}

/** The percentage that a part is of all. `description` says both. */
export function percentOfAllField(description: string) {
  return percent.nullable().meta({ description: `${description}; at most ${DECIMALS} decimals` });
}

/** `part` of `whole` in percent, rounded once, half away from zero. `whole` must be positive. */
export function percentOf(part: bigint, whole: bigint): string {
  const size = (part < 0n ? -part : part) * 100n * 10n ** BigInt(DECIMALS);
  const rounded = (2n * size + whole) / (2n * whole);
  return formatUnits(part < 0n ? -rounded : rounded, DECIMALS);
}

/** The members of an answer that are null or incomplete although the call succeeded. */
export const missingField = z
  .array(
    z.strictObject({
      field: z.string().meta({ description: 'The member that is null or incomplete' }),
      reason: z.string().meta({ description: 'What its source did, or why this service does not have it' }),
    }),
  )
  .meta({ description: 'Members that are null or incomplete, each with the reason; empty when there are none' });

export type Missing = z.output<typeof missingField>;

/** The entries whose condition holds. */
export function missingWhen(
  entries: readonly (readonly [isMissing: boolean, field: string, reason: string])[],
): Missing {
  return entries.flatMap(([isMissing, field, reason]) => (isMissing ? [{ field, reason }] : []));
}

/** How long an answer waits for its optional parts. All of them run at once. */
const WAIT_MS = 2500;

/** One optional part of an answer. When the signal aborts, it is no longer waited for. */
type Part<T> = (signal: AbortSignal) => Promise<T>;

/** The parts' values, null for a part that failed, and the reason of each failure. */
interface Gathered<T> {
  readonly parts: { readonly [K in keyof T]: T[K] | null };
  readonly missing: Missing;
}

/**
 * Reads the optional parts of an answer at once, each under the name of the member that it fills. A source that fails, or takes longer than 2.5 s, costs
 * its own part and nothing else. Rejects with the signal's reason when the caller aborts, and with any error that is a bug.
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
export const detailField = z
  .strictObject({
    path: z.string().meta({ description: 'The priced route; the same is sold in bitcoin below /v1/lightning' }),
    priceUsd: z.string().meta({ description: 'What a call of it costs' }),
    adds: z.string().meta({ description: 'What it says beyond this answer' }),
  })
  .meta({ description: 'The priced detail of this free summary' });

/** The link to a priced endpoint. Its path and price are read from its own declaration. Throws for a free endpoint. */
export function paidDetail<S>({ path, price }: Endpoint<S>, adds: string): z.output<typeof detailField> {
  if (price === null) throw new Error(`${path} is free`);
  return { path: `/v1/paid${path}`, priceUsd: price.usd, adds };
}
