import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';

/** What a node answered to one call of a batch. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/**
 * The node understood the call and refused it (a revert, an unknown method). Asking another provider would not help.
 * `code` and `data` are the node's own.
 */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

/** JSON-RPC quantity as bigint; leading zeros are tolerated, more than 256 bits are not. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform(BigInt);

/** A quantity as a number. A value above 2^53 - 1 is refused, not rounded. */
export const index = quantity.refine((value) => value <= BigInt(Number.MAX_SAFE_INTEGER)).transform(Number);

/** Hex data of whole bytes. */
export const data = z.string().refine((text) => text.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(text));

/** 32 bytes, lower case. */
export const word = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase() as `0x${string}`);

/** 20 bytes, lower case. */
export const account = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text) => text.toLowerCase() as `0x${string}`);

/** Checks a node's answer against a schema. Throws UpstreamFailed (502) for a malformed answer. */
export function parseAnswer<S extends z.ZodType>(schema: S, raw: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new UpstreamFailed('chain', `malformed ${what}`, parsed.error);
  return parsed.data;
}

/** The result of one call of a batch. Throws UpstreamFailed (502) when the node gave none or refused the call. */
export function resultOf(outcome: RpcOutcome | undefined, what: string): unknown {
  if (outcome === undefined) throw new UpstreamFailed('chain', `no answer about ${what}`);
  if ('error' in outcome) throw new UpstreamFailed('chain', `${what} was refused`, outcome.error);
  return outcome.result;
}

/** `resultOf`, then `parseAnswer`: the checked answer to one call of a batch. */
export function readOutcome<S extends z.ZodType>(
  outcome: RpcOutcome | undefined,
  schema: S,
  what: string,
): z.output<S> {
  return parseAnswer(schema, resultOf(outcome, what), what);
}

/** A block number as JSON-RPC writes it. */
export function toQuantity(value: number | bigint): `0x${string}` {
  return `0x${value.toString(16)}`;
}
