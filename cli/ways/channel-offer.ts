import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import type { x402HTTPClient } from '@x402/fetch';
import { z } from 'zod';
import { keepEntries } from '../challenges.ts';
import { formatUsdc, VALIDITY_SECONDS } from '../money.ts';
import { entriesIn, offerOf, tokenExtra, usdcEntry } from './exact.ts';
import type { Asked, Fault, Offer, Plan, PlanFor } from './way.ts';

// What a 402 asks for over a payment channel, apart from the official client (channel.ts), which takes a second to
// load.

const channelSchema = z.looseObject({
  ...usdcEntry,
  scheme: z.literal('batch-settlement'),
  extra: z.looseObject({
    ...tokenExtra,
    receiverAuthorizer: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    // The client would silently take another delay for a text, and so another channel.
    withdrawDelay: z.int().positive(),
    minDeposit: z
      .string()
      .regex(/^\d{1,30}$/)
      .optional(),
  }),
});

/** How long a seller may keep a deposit that the payer asks back on the chain: the contract allows 30 days. */
const MOST_DELAY_SECONDS = 7 * 86_400;

/** The entry of a 402 that is paid over a channel, and the challenge reduced to it. */
export interface ChannelOffer {
  readonly challenge: PaymentRequired;
  readonly requirement: PaymentRequirements;
  readonly amountUnits: bigint;
}

/** Picks the first entry that is paid in USDC over a payment channel. Null when there is none. */
export function readChannelOffer(header: string): ChannelOffer | null {
  const [entry] = entriesIn(header, channelSchema);
  if (!entry) return null;
  const { challenge, requirement } = entry;
  const reduced = { ...challenge, accepts: [requirement] } as unknown as PaymentRequired;
  return { challenge: reduced, requirement, amountUnits: BigInt(requirement.amount) };
}

/** What a 402 asks for over a payment channel. */
export function readChannel({ headers }: Asked): readonly Offer[] | Fault | null {
  const header = headers.get('payment-required');
  if (header === null) return null;
  const entries = entriesIn(header, channelSchema);
  const found = readChannelOffer(header);
  if (!found) return { fault: 'nothing on offer is paid over a payment channel (batch-settlement)' };
  const delay = Number(found.requirement.extra.withdrawDelay);
  if (delay > MOST_DELAY_SECONDS) {
    const hours = [delay, MOST_DELAY_SECONDS].map((seconds) => Number((seconds / 3600).toFixed(2)));
    return { fault: `the channel keeps a deposit for ${hours[0]} h, and at the most ${hours[1]} h are accepted` };
  }
  return entries.slice(0, 1).map((entry) => ({
    ...offerOf(entry),
    way: 'channel',
    terms: channelTermsText(found),
    plan: (buyer) => planChannel(found, buyer),
  }));
}

async function planChannel(offer: ChannelOffer, { address }: PlanFor): Promise<Plan> {
  if (address === null) return { reference: 'none', expiresAt: null, channel: null, content: offer };
  const channel = await channelIdOf(offer, address);
  const content = { challenge: offer.challenge, requirement: offer.requirement };
  return { reference: channel, expiresAt: null, channel, content };
}

/** The channel of a payer and an offer. */
async function channelIdOf({ requirement }: ChannelOffer, address: `0x${string}`): Promise<string> {
  const { BatchSettlementEvmScheme, computeChannelId } = await import('@x402/evm/batch-settlement/client');
  // The id follows from names alone. Nothing is signed here.
  const signer = { address, signTypedData: () => Promise.reject(new Error('this wallet signs nothing')) };
  const config = new BatchSettlementEvmScheme(signer as never).buildChannelConfig(requirement);
  return computeChannelId(config, requirement.network as `eip155:${string}`);
}

/** The offer of a plan that was kept. */
export function channelOfferIn(content: unknown): ChannelOffer {
  const { challenge, requirement } = content as Pick<ChannelOffer, 'challenge' | 'requirement'>;
  return { challenge, requirement, amountUnits: BigInt(requirement.amount) };
}

/** What a buyer should know before it deposits, as one line. */
export function channelTermsText({ requirement: { extra } }: ChannelOffer): string {
  const least =
    typeof extra.minDeposit === 'string'
      ? `deposits of ${formatUsdc(BigInt(extra.minDeposit))} and more`
      : 'any deposit';
  return `${least}; without the seller, the payer can withdraw after ${Number(extra.withdrawDelay) / 3600} h`;
}

/**
 * Signs for an offer that was checked, with the official client, for ten minutes at most. The client takes the time
 * from
 * the entry that it signs for, so it gets a shorter one. The seller gets its own entry back, because it compares that
 * with its offer.
 */
export async function signOffer(client: x402HTTPClient, offer: ChannelOffer): Promise<PaymentPayload> {
  const { challenge, requirement } = offer;
  const maxTimeoutSeconds = Math.min(requirement.maxTimeoutSeconds, VALIDITY_SECONDS);
  const payload = await client.createPaymentPayload({ ...challenge, accepts: [{ ...requirement, maxTimeoutSeconds }] });
  return { ...payload, accepted: requirement };
}

/** What names a channel of one payer. An entry may ask for another way to deposit into it. */
const sameChannelSchema = z.looseObject({
  scheme: z.literal('batch-settlement'),
  network: usdcEntry.network,
  asset: usdcEntry.asset,
  payTo: usdcEntry.payTo,
  extra: z.looseObject({ receiverAuthorizer: z.string(), withdrawDelay: z.number() }),
});

/** A later 402's header with the entries alone that are paid over the channel of this offer. Null without any. */
export function ofChannel(header: string, offer: ChannelOffer): string | null {
  return keepEntries(header, (entry) => isOfChannel(entry, offer));
}

function isOfChannel(entry: unknown, { requirement: own }: ChannelOffer): boolean {
  const { data } = sameChannelSchema.safeParse(entry);
  if (!data) return false;
  const { network, asset, payTo, extra } = data;
  const named = (of: { network: string; asset: string; payTo: string }, terms: Record<string, unknown>): string =>
    `${of.network} ${of.asset} ${of.payTo} ${terms.receiverAuthorizer} ${terms.withdrawDelay}`.toLowerCase();
  return named({ network, asset, payTo }, extra) === named(own, own.extra);
}
