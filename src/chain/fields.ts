import { Contradiction } from './rpc/checked.ts';

// Read by hand, because the collector reads thousands of transactions and logs a second during its first fill.
// A schema library would cost several times as much as parsing the JSON.

type Hex = `0x${string}`;
export type Fields = Readonly<Record<string, unknown>>;

const WORD = /^0x[0-9a-f]{64}$/;
const ACCOUNT = /^0x[0-9a-f]{40}$/;
const DATA = /^0x(?:[0-9a-f]{2})*$/;
const QUANTITY = /^0x[0-9a-f]{1,64}$/;

function refuse(what: string): never {
  throw new Contradiction('shape', what);
}

/** A JSON object. */
export function fieldsOf(value: unknown, what: string): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : refuse(what);
}

/** A JSON list. */
export function listOf(value: unknown, what: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(what);
}

/** Hex in lower case that matches `form`; most nodes write it so, and the others are converted. */
function hexOf(value: unknown, form: RegExp, what: string): Hex {
  if (typeof value !== 'string') return refuse(what);
  if (form.test(value)) return value as Hex;
  const lower = value.toLowerCase();
  return form.test(lower) ? (lower as Hex) : refuse(what);
}

/** 32 bytes. */
export const wordOf = (value: unknown, what: string): Hex => hexOf(value, WORD, what);
/** 20 bytes. */
export const accountOf = (value: unknown, what: string): Hex => hexOf(value, ACCOUNT, what);
/** Whole bytes. */
export const dataOf = (value: unknown, what: string): Hex => hexOf(value, DATA, what);
/** A number of up to 256 bits. */
export const bigintOf = (value: unknown, what: string): bigint => BigInt(hexOf(value, QUANTITY, what));

/** A quantity as a number. A value above 2^53 - 1 is refused, not rounded. */
export function countOf(value: unknown, what: string): number {
  const count = Number(hexOf(value, QUANTITY, what));
  return Number.isSafeInteger(count) ? count : refuse(what);
}
