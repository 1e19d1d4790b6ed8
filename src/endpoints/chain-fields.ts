import { z } from 'zod';
import type { ChainClient } from '../chain/rpc/client.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';

/** An exact amount as digits, with a fraction when it has one. Never a float. */
export function decimal(description: string) {
  return z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .meta({ description });
}

/** A whole number as digits, because it may exceed 2^53. */
export function bigInteger(description: string) {
  return z.string().regex(/^\d+$/).meta({ description });
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
  return z
    .int()
    .nonnegative()
    .meta({ description: `${description}, in Unix seconds` });
}

/** The block at which every figure of a live answer was read. */
export const asOfBlock = z.int().nonnegative().meta({ description: 'The block at which the answer was read' });

/**
 * An address in the query, in any letter case; checksums are not checked. It is parsed to lower case, so that equal requests have equal parameters.
 */
export function addressParam(description: string) {
  return hexParam(40, 'a 0x address of 40 hex digits').meta({ description });
}

/** A transaction hash in the query, in any letter case; parsed to lower case. */
export function hashParam(description: string) {
  return hexParam(64, 'a 0x transaction hash of 64 hex digits').meta({ description });
}

function hexParam(digits: number, form: string) {
  return z
    .string({ error: `required: ${form}` })
    .regex(new RegExp(`^0[xX][0-9a-fA-F]{${digits}}$`), form)
    .transform((text) => text.toLowerCase() as `0x${string}`);
}

/** The `source` member of an answer that was read from the chain just now. */
export function chainSource(chain: ChainClient, clock: Clock) {
  return { name: `JSON-RPC of eip155:${chain.chainId}`, url: chain.publicUrl, retrievedAt: nowSeconds(clock) };
}
