import { z } from 'zod';
import type { ChainClient } from '../chain/rpc/client.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { hasFittingCase } from '../lib/secp256k1.ts';
import { formatGwei } from '../lib/units.ts';

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
  return z
    .int()
    .nonnegative()
    .meta({ description: `${description}, in Unix seconds` });
}

/** The block at which every figure of a live answer was read. */
export const asOfBlock = z.int().nonnegative().meta({ description: 'The block at which the answer was read' });

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
