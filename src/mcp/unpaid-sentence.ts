import type { PaymentRequirements } from '@x402/core/types';
import { chainTitle, type NamedChain } from '../lib/named-chain.ts';
import { MSAT_PER_SAT } from '../lib/units.ts';

/** What the sentence is about. */
export interface Unpaid {
  readonly tool: string;
  readonly priceUsd: string;
  readonly chain: NamedChain;
  readonly accepts: readonly PaymentRequirements[];
  /** What is wrong with the payment that came, in whole sentences; null where none came. */
  readonly refusal: string | null;
}

/**
 * The first text of an unpaid call, for models and people: that nothing was charged, the price, and what happens next. After a refusal it also says what
 * is wrong. The price is then that of a new payment, because what is wrong may be mended by presenting the old one again.
 */
export function unpaidSentence({ tool, priceUsd, chain, accepts, refusal }: Unpaid): string {
  const [offer] = accepts;
  const happened =
    refusal === null
      ? `${tool} is not paid for yet, and nothing was charged.`
      : `The payment for ${tool} was refused, and this call was not charged. ${refusal}`;
  if (!offer) return `${happened} No new payment can be asked for now: make the same call again later.`;
  const sats = offer.asset === 'BTC' ? BigInt(offer.amount) / MSAT_PER_SAT : null;
  const [price, wallet] =
    sats === null
      ? [`${priceUsd} USDC on ${chainTitle(chain)}`, 'USDC']
      : [`${sats} ${sats === 1n ? 'sat' : 'sats'} over Lightning (${priceUsd} USD)`, 'Lightning'];
  const what = refusal === null ? 'It costs' : 'A new payment costs';
  return `${happened} ${what} ${price}: a client with a ${wallet} wallet pays it by the terms below, and then makes the same call again.`;
}
