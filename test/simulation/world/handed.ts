import { fromHex, type Hex } from './chain/keys.ts';
import type { Terms } from './chain/token.ts';

/** An authorization as it is handed to somebody who settles: a facilitator, the Gateway. */
export interface Handed {
  readonly terms: Terms;
  readonly signature: Buffer;
  readonly payTo: Hex;
  readonly amount: bigint;
  readonly network: string;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly hasResource: boolean;
}

interface SettleBody {
  paymentPayload: {
    resource?: { url?: string };
    payload: { signature: string; authorization: Record<string, string> };
  };
  paymentRequirements: { payTo: string; amount: string; network: string; extra?: Record<string, unknown> };
}

/** Reads the body of `/settle` and `/verify`; null for what is none. */
export function readHanded(body: string): Handed | null {
  try {
    const { paymentPayload, paymentRequirements } = JSON.parse(body) as SettleBody;
    const { signature, authorization } = paymentPayload.payload;
    const { payTo, amount, network, extra = {} } = paymentRequirements;
    return {
      terms: termsOf(authorization),
      signature: fromHex(signature),
      payTo: payTo.toLowerCase() as Hex,
      amount: BigInt(amount),
      network,
      extra,
      hasResource: typeof paymentPayload.resource?.url === 'string',
    };
  } catch {
    return null;
  }
}

/** Six fields of text as an authorization. */
export function termsOf(fields: Record<string, string>): Terms {
  const lower = (name: string): Hex => String(fields[name]).toLowerCase() as Hex;
  const number = (name: string): bigint => BigInt(String(fields[name]));
  return {
    from: lower('from'),
    to: lower('to'),
    nonce: lower('nonce'),
    value: number('value'),
    validAfter: number('validAfter'),
    validBefore: number('validBefore'),
  };
}
