import type { PaymentRequirements } from '@x402/core/types';
import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import { MSAT_PER_SAT } from '../lib/units.ts';

/** What the sentence is about. */
export interface Unpaid {
  readonly tool: string;
  readonly priceUsd: string;
  readonly chain: NamedChain;
  readonly accepts: readonly PaymentRequirements[];
  /** Why a payment was refused; null where none came. */
  readonly refusal: string | null;
}

/** The first text of an unpaid call, in one sentence for models and people: the price, that nothing was charged, and what happens next. */
export function unpaidSentence({ tool, priceUsd, chain, accepts, refusal }: Unpaid): string {
  const [offer] = accepts;
  const happened =
    refusal === null
      ? `${tool} is not paid for yet, and nothing was charged`
      : `The payment for ${tool} was refused (${refusal}), and this call was not charged`;
  if (!offer) return `${happened}: no offer can be made now, so make the same call again later.`;
  const sats = offer.asset === 'BTC' ? BigInt(offer.amount) / MSAT_PER_SAT : null;
  const [price, wallet] =
    sats === null
      ? [`${priceUsd} USDC on ${chainTitle(chain)}`, 'USDC']
      : [`${sats} ${sats === 1n ? 'sat' : 'sats'} over Lightning (${priceUsd} USD)`, 'Lightning'];
  return `${happened}: it costs ${price}, which a client with a ${wallet} wallet pays by the terms below, and then makes the same call again.`;
}
