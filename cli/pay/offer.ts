import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { z } from 'zod';
import { keepEntries, readChallenge } from './challenge.ts';
import { usdcToken } from './usdc-tokens.ts';

const commonSchema = {
  network: z.string().regex(/^eip155:\d{1,18}$/),
  asset: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  amount: z.string().regex(/^\d{1,30}$/),
  payTo: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  maxTimeoutSeconds: z.int().positive(),
};
const token = { name: z.string(), version: z.string(), assetTransferMethod: z.literal('eip3009').optional() };

const transferSchema = z.looseObject({
  ...commonSchema,
  scheme: z.literal('exact'),
  // An entry with a `verifyingContract` is refused, because the signature would be made for that contract instead of the token.
  extra: z.looseObject({ ...token, verifyingContract: z.undefined().optional() }),
});

const channelSchema = z.looseObject({
  ...commonSchema,
  scheme: z.literal('batch-settlement'),
  extra: z.looseObject({
    ...token,
    receiverAuthorizer: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    // The client would silently take another delay for a text, and so another channel.
    withdrawDelay: z.int().positive(),
    minDeposit: z
      .string()
      .regex(/^\d{1,30}$/)
      .optional(),
  }),
});

/** The entry of a 402 that this buyer can pay, and the challenge reduced to it. */
export interface BuyableOffer {
  readonly challenge: PaymentRequired;
  readonly requirement: PaymentRequirements;
  readonly amountUnits: bigint;
}

/**
 * Reads a PAYMENT-REQUIRED header and picks the first entry that is a plain transfer of USDC by authorization.
 * Throws when there is none, because another asset's amount would be compared with the ceiling in the wrong unit.
 */
export function readOffer(header: string): BuyableOffer {
  const offer = pick(header, transferSchema);
  if (offer) return offer;
  throw new Error('nothing on offer is a plain USDC transfer (scheme exact, EIP-3009) on a chain whose USDC is known');
}

/** Picks the first entry that is paid in USDC over a payment channel. Null when there is none. */
export function readChannelOffer(header: string): BuyableOffer | null {
  return pick(header, channelSchema);
}

/** What names a channel of one payer. An entry may ask for another way to deposit into it. */
const sameChannelSchema = z.looseObject({
  scheme: z.literal('batch-settlement'),
  network: commonSchema.network,
  asset: commonSchema.asset,
  payTo: commonSchema.payTo,
  extra: z.looseObject({ receiverAuthorizer: z.string(), withdrawDelay: z.number() }),
});

/** A later 402's header with the entries alone that are paid over the channel of this offer. Null when there is none. */
export function ofChannel(header: string, offer: BuyableOffer): string | null {
  return keepEntries(header, (entry) => isOfChannel(entry, offer));
}

function isOfChannel(entry: unknown, { requirement: own }: BuyableOffer): boolean {
  const { data } = sameChannelSchema.safeParse(entry);
  if (!data) return false;
  const { network, asset, payTo, extra } = data;
  const named = (of: { network: string; asset: string; payTo: string }, terms: Record<string, unknown>): string =>
    `${of.network} ${of.asset} ${of.payTo} ${terms.receiverAuthorizer} ${terms.withdrawDelay}`.toLowerCase();
  return named({ network, asset, payTo }, extra) === named(own, own.extra);
}

function pick(header: string, schema: typeof transferSchema | typeof channelSchema): BuyableOffer | null {
  const challenge = readChallenge(header);
  for (const entry of challenge.accepts) {
    const parsed = schema.safeParse(entry);
    if (!parsed.success || !usdcToken(parsed.data.network, parsed.data.asset)) continue;
    const requirement = entry as PaymentRequirements;
    const reduced = { ...challenge, accepts: [requirement] } as PaymentRequired;
    return { challenge: reduced, requirement, amountUnits: BigInt(parsed.data.amount) };
  }
  return null;
}
