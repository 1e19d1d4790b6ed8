import type { Quote } from '../store/chain/trade-reads.ts';

/** A trade is compared with so many others. It is odd, so that one of them is the median. For Arc's EURC that is some minutes of trading. */
export const WINDOW = 21;
/** With fewer trades to compare with, a trade counts. */
const MIN_WINDOW = 3;

/** A trade to be filtered. */
export interface Candidate extends Quote {
  readonly usdcE9: bigint;
}

/** Why a trade does not count towards prices; null when it does. */
export type Verdict = 'dust' | 'outlier' | null;

/** The limits in the rules of `filterTrades`. */
export interface FilterRules {
  readonly dustE9: bigint;
  readonly outlierPercent: number;
}

/**
 * Filters one token's trades of a span, in the chain's order, by these rules:
 * 1. a trade of less USDC than the limit is dust;
 * 2. any other trade is compared with the median price of the 21 trades before it; dust and trades of its own transaction are left out, and each
 *    transaction has one vote; where there are fewer than 21, trades after it are added;
 * 3. with fewer than 3 trades to compare with, a trade counts;
 * 4. a trade is an outlier when its price is above median · (1 + limit) or below median / (1 + limit).
 * Outliers have a vote. Without it a real jump of the price would be refused for ever, and a verdict would depend on the order in which
 * blocks were read. Eleven transactions move the median.
 * `before` and `after` are the stored neighbours, nearest first.
 */
export function filterTrades(
  trades: readonly Candidate[],
  before: readonly Quote[],
  after: readonly Quote[],
  rules: FilterRules,
): Verdict[] {
  const counted = trades.filter(({ usdcE9 }) => usdcE9 >= rules.dustE9);
  const line: readonly Quote[] = [...before.toReversed(), ...counted, ...after];
  let place = before.length;
  return trades.map((trade) => {
    if (trade.usdcE9 < rules.dustE9) return 'dust';
    const median = medianAround(line, place++);
    if (median === null) return null;
    const reach = 1 + rules.outlierPercent / 100;
    return trade.price > median * reach || trade.price * reach < median ? 'outlier' : null;
  });
}

function medianAround(line: readonly Quote[], place: number): number | null {
  const votes = new Map<string, number>();
  const own = line[place]?.transactionHash;
  const collect = (from: number, step: 1 | -1): void => {
    for (let at = from; at >= 0 && at < line.length && votes.size < WINDOW; at += step) {
      const quote = line[at];
      if (quote && quote.transactionHash !== own && !votes.has(quote.transactionHash)) {
        votes.set(quote.transactionHash, quote.price);
      }
    }
  };
  collect(place - 1, -1);
  collect(place + 1, 1);
  return votes.size < MIN_WINDOW ? null : medianOf([...votes.values()]);
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}
