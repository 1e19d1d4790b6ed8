import { z } from 'zod';
import type { Fault, PaymentChallenge } from './payment-challenge.ts';
import { VALIDITY_SECONDS } from './usdc.ts';
import { usdcToken } from './usdc-tokens.ts';

/** In seconds: MPP's default where the challenge names no expiry. */
const DEFAULT_VALIDITY_SECONDS = 300;

/** What a 402 asks for over MPP's method `evm`: an authorization of USDC (EIP-3009). */
export interface EvmOffer {
  readonly challenge: PaymentChallenge;
  readonly chainId: number;
  /** CAIP-2. */
  readonly network: string;
  readonly asset: `0x${string}`;
  readonly payTo: `0x${string}`;
  readonly amountUnits: bigint;
  /** The token's EIP-712 domain. The challenge has no field for it. */
  readonly domain: { readonly name: string; readonly version: string };
  readonly description: string | null;
}

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const requestSchema = z.looseObject({
  amount: z.string().regex(/^[1-9]\d{0,29}$/, 'its amount is no positive whole number'),
  currency: address,
  recipient: address,
  description: z.string().optional(),
  methodDetails: z.looseObject({
    chainId: z.int().positive(),
    // Without the list the seller takes raw transactions, which this buyer does not sign.
    credentialTypes: z
      .array(z.string(), 'it names no credential types')
      .refine((types) => types.includes('authorization'), {
        error: 'it does not take an authorization (EIP-3009)',
      }),
    decimals: z.literal(6, 'its asset has not 6 decimals').optional(),
    splits: z.undefined('it splits the amount').optional(),
  }),
});

/** The first challenge that an authorization of USDC on a known chain pays. Null when there is no challenge of the method. */
export function readEvmOffer(challenges: readonly PaymentChallenge[]): EvmOffer | Fault | null {
  const asked = challenges.filter(({ method, intent }) => method === 'evm' && intent === 'charge').map(readOne);
  return asked.find((offer) => !('fault' in offer)) ?? asked[0] ?? null;
}

function readOne(challenge: PaymentChallenge): EvmOffer | Fault {
  const read = requestSchema.safeParse(challenge.request);
  if (!read.success) return { fault: `a Payment challenge (evm) cannot be paid: ${read.error.issues[0]?.message}` };
  const { amount, currency, recipient, description, methodDetails } = read.data;
  const network = `eip155:${methodDetails.chainId}`;
  const domain = usdcToken(network, currency);
  if (!domain)
    return { fault: `a Payment challenge asks for ${currency} on ${network}, which is no USDC that is known here` };
  return {
    challenge,
    chainId: methodDetails.chainId,
    network,
    domain,
    asset: currency as `0x${string}`,
    payTo: recipient as `0x${string}`,
    amountUnits: BigInt(amount),
    description: challenge.description ?? description ?? null,
  };
}

/**
 * When an authorization for this offer ends, in Unix seconds: with the offer, or after ten minutes. Throws when the offer
 * has expired.
 */
export function evmValidity({ challenge: { expiresAt } }: EvmOffer, now: number): number {
  if (expiresAt === null) return now + DEFAULT_VALIDITY_SECONDS;
  if (expiresAt <= now) throw new Error(`the offer expired ${now - expiresAt} s ago; nothing was signed`);
  return Math.min(expiresAt, now + VALIDITY_SECONDS);
}
