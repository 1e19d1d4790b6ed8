import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { Unavailable } from '../errors.ts';

/** What the buyer must know to sign the next payment. The members of `extra` are added to those of the offer's entry with this scheme. */
export interface Correction {
  readonly scheme: string;
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * Whether the refusal is not counted as a failure: the buyer has paid for a call here before, and the refusal has cost no read of the chain. It is
   * counted although where the endpoint ran for it.
   */
  readonly isForgiven: boolean;
}

/** x402's word for a payment whose terms no entry of the offer has. */
export const NOT_OFFERED = 'No matching payment requirements';

/** The offer's entries with a correction in them. */
export function corrected(
  accepts: readonly PaymentRequirements[],
  { scheme, extra }: Correction,
): readonly PaymentRequirements[] {
  return accepts.map((entry) => (entry.scheme === scheme ? { ...entry, extra: { ...entry.extra, ...extra } } : entry));
}

interface RefusalOptions {
  settlement?: SettleResponse | null;
  correction?: Correction | null;
  detail?: string | undefined;
}

/**
 * 402: no money moved for this request. `reason` is x402's error code where x402 has one; it goes into the challenge's `error`. `settlement` is set
 * when a settlement was tried and refused; it goes into PAYMENT-RESPONSE. `correction` is set when the buyer's state is old. `detail` says in a sentence
 * what is wrong and what the buyer can do, where more is known than the reason; otherwise the reason has a sentence (`open-refusal-words.ts`).
 */
export class PaymentRefused extends Error {
  readonly reason: string;
  readonly settlement: SettleResponse | null;
  readonly correction: Correction | null;
  readonly detail: string | undefined;
  constructor(reason: string, { settlement = null, correction = null, detail }: RefusalOptions = {}) {
    super(reason);
    this.name = 'PaymentRefused';
    this.reason = reason;
    this.settlement = settlement;
    this.correction = correction;
    this.detail = detail;
  }
}

/** Says in words why a payment was refused, and what the buyer can do. */
export type RefusalWords = (refusal: Pick<PaymentRefused, 'reason' | 'detail'>) => string;

/** A sentence for each reason of one part of the service. */
export type RefusalSentences = Readonly<Record<string, string>>;

/** Joins the sentences of all parts. A reason without one is a third party's own word, and is repeated. */
export function refusalWords(tables: readonly RefusalSentences[]): RefusalWords {
  const sentences = new Map(tables.flatMap((table) => Object.entries(table)));
  return ({ reason, detail }) => detail ?? sentences.get(reason) ?? `The payment was refused: ${reason}.`;
}

/** 503: the reply store has no space to keep another reply for redelivery. */
export function replyStoreFull(): Unavailable {
  return new Unavailable('reply_store_full', 'There is no space to keep another reply; try again later.', 30);
}
