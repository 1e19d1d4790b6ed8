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
  find(order: Asked): Promise<Quote | null>;
  keep(order: Asked, quote: Quote): void;
}

type Asked = Pick<LightningOrder<never>, 'identity' | 'binding'>;

/**
 * Keeps each quote for some seconds in this process, so that a client that asks twice gets one invoice and causes one run. A client is its identity, as
 * on redelivery. The clients behind a proxy that is not trusted share an address, and each of their requests has an identity of its own.
 */
export function createOpenQuotes(store: Pick<LightningStore, 'findClaim'>, network: string, clock: Clock): OpenQuotes {
  const quotes = new Map<string, { quote: Quote; until: number }>();
  return {
    find: async (order) => {
      const kept = quotes.get(keyOf(order));
      if (!kept || kept.until <= clock.nowMs()) return null;
      // A claim may be made by another process. A buyer who asks again after it has paid wants another answer.
      return (await store.findClaim({ network, paymentHash: kept.quote.invoice.paymentHash })) ? null : kept.quote;
    },
    keep: (order, quote) => {
      if (order.identity !== null) setNewest(quotes, keyOf(order), { quote, until: clock.nowMs() + REUSE_MS }, MOST);
    },
  };
}

function keyOf({ identity, binding }: Asked): string {
  return `${identity} ${Buffer.from(binding.hash).toString('base64')}`;
}
