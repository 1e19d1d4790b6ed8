import type { MarketsConfig } from '../../config/markets.ts';
import { AppError, Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createSingleFlight } from '../../lib/tasks.ts';
import type { Upstreams } from '../client/http.ts';
import { agreedRate } from './btc-agreement.ts';
import { type BtcTicker, type ReadTicker, readBitstamp, readCoinbase, readKraken } from './btc-tickers.ts';

/** The BTC/USD rate of the exchanges. */
export interface BtcUsd {
  /** Decimal string: the median of three, or the mean of two that agree. */
  readonly rate: string;
  readonly exchanges: readonly { readonly name: string; readonly rate: string }[];
  /** When the oldest of the prices was read, Unix milliseconds. */
  readonly retrievedAtMs: number;
}

/** The rate at which sats are priced. */
export interface RateSource {
  /**
   * The rate, at most 60 s old. Rejects with Unavailable (503, `btc_rate_unavailable`) when fewer than two exchanges answer, or when only two
   * answer and differ by more than 2 %.
   */
  current(): Promise<BtcUsd>;
}

/** A rate source that says when there is no rate. */
export interface WatchedRates extends RateSource {
  /**
   * Why there is no rate, as the last reading found; null after a good one, and before the first. While there is none, this asks the exchanges again
   * once a minute, so that the fault ends also when nobody buys.
   */
  fault(): string | null;
}

interface RateSourceDeps {
  readonly upstreams: Upstreams;
  readonly urls: MarketsConfig['exchanges'];
  readonly clock: Clock;
}

const KEEP_MS = 60_000;
/** After a failure the exchanges are not asked for this time. Kraken accepts about one request a second, and invoices are requested faster. */
const REST_SECONDS = 5;
/** A ticker is some hundred bytes; a buyer waits for the slowest of the three. */
const BOUNDS = { timeoutMs: 3000, maxBytes: 64 * 1024, concurrency: 1, retries: 0 } as const;

const EXCHANGES: readonly { name: string; key: keyof MarketsConfig['exchanges']; read: ReadTicker }[] = [
  { name: 'Coinbase', key: 'coinbase', read: readCoinbase },
  { name: 'Kraken', key: 'kraken', read: readKraken },
  { name: 'Bitstamp', key: 'bitstamp', read: readBitstamp },
];

/**
 * Reads BTC/USD from three exchanges in parallel when a caller asks and the last rate is older than 60 s. Concurrent callers share a reading.
 * An older rate is never used for a price.
 */
export function createRateSource({ upstreams, urls, clock }: RateSourceDeps): WatchedRates {
  const tickers = EXCHANGES.map(({ name, key, read }) => {
    const upstream = upstreams.open({ name, ...BOUNDS });
    return { name, read: () => read(upstream, urls[key]) };
  });
  const share = createSingleFlight<BtcUsd>();
  let newest: BtcUsd | null = null;
  let failed: { atMs: number; error: Unavailable } | null = null;

  /** When the clock was set back, neither a rate nor a failure stays valid. */
  const isWithin = (atMs: number, ms: number) => clock.nowMs() >= atMs && clock.nowMs() - atMs < ms;

  async function refresh(): Promise<BtcUsd> {
    const outcomes = await Promise.all(tickers.map(attempt));
    const quotes = outcomes.filter((outcome) => 'rate' in outcome);
    const rate = agreedRate(quotes.map((ticker) => ticker.rate));
    if (rate === null) {
      const reasons = outcomes.flatMap((outcome) => ('reason' in outcome ? [outcome.reason] : []));
      failed = { atMs: clock.nowMs(), error: unavailable(reasons) };
      throw failed.error;
    }
    newest = {
      rate,
      exchanges: quotes.map(({ name, rate: own }) => ({ name, rate: own })),
      retrievedAtMs: Math.min(...quotes.map(({ retrievedAtMs }) => retrievedAtMs)),
    };
    failed = null;
    return newest;
  }

  function fault(): string | null {
    if (failed === null) return null;
    const { atMs, error } = failed;
    if (!isWithin(atMs, KEEP_MS)) share('BTC/USD', undefined, refresh).catch(() => {});
    return error.message;
  }

  return {
    fault,
    async current() {
      if (newest !== null && isWithin(newest.retrievedAtMs, KEEP_MS)) return newest;
      if (failed !== null && isWithin(failed.atMs, REST_SECONDS * 1000)) throw failed.error;
      return share('BTC/USD', undefined, refresh);
    },
  };
}

interface Ticker {
  readonly name: string;
  read(): Promise<BtcTicker>;
}

/** One exchange's price, or the reason why it does not count. Rethrows an error that is no UpstreamFailed. */
async function attempt({ name, read }: Ticker): Promise<(BtcTicker & { name: string }) | { reason: string }> {
  try {
    return { name, ...(await read()) };
  } catch (error) {
    if (error instanceof AppError) return { reason: error.message };
    throw error;
  }
}

/** When at most one exchange failed, the other two did not agree. */
function unavailable(reasons: readonly string[]): Unavailable {
  const why = reasons.length > 1 ? reasons : [...reasons, 'the other two exchanges are more than 2 % apart'];
  const detail = `The bitcoin price is not known now, so nothing can be priced in sats (${why.join('; ')}).`;
  return new Unavailable('btc_rate_unavailable', detail, REST_SECONDS);
}
