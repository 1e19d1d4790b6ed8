import type { Clock } from '../../../lib/clock.ts';
import { setNewest } from '../../../lib/set-newest.ts';
import type { LightningStore } from '../../../store/ports/proofs.ts';
import type { Quote } from '../../protocol.ts';
import type { LightningOrder } from './order.ts';

/** Some clients ask twice before they pay, within a second. */
const REUSE_MS = 5000;
/** More quotes than the default limits allow within REUSE_MS. */
const MOST = 1000;

/** The quotes of the last seconds. */
export interface OpenQuotes {
  /** Returns the client's open quote for the same request, unless it has been paid; null without one. */
  find(order: LightningOrder<never>): Promise<Quote | null>;
  keep(order: LightningOrder<never>, quote: Quote): void;
}

/** Keeps each quote for some seconds in this process, so that a client that asks twice gets one invoice and causes one run. */
export function createOpenQuotes(store: Pick<LightningStore, 'findClaim'>, network: string, clock: Clock): OpenQuotes {
  const quotes = new Map<string, { quote: Quote; until: number }>();
  return {
    find: async (order) => {
      const kept = quotes.get(keyOf(order));
      if (!kept || kept.until <= clock.nowMs()) return null;
      // A claim may be made by another process. A buyer who asks again after it has paid wants another answer.
      return (await store.findClaim({ network, paymentHash: kept.quote.invoice.paymentHash })) ? null : kept.quote;
    },
    keep: (order, quote) => setNewest(quotes, keyOf(order), { quote, until: clock.nowMs() + REUSE_MS }, MOST),
  };
}

function keyOf({ client, binding }: LightningOrder<never>): string {
  return `${client} ${Buffer.from(binding.hash).toString('base64')}`;
}
