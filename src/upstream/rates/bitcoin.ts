import { z } from 'zod';
import type { Config } from '../../config.ts';
import { AppError, Unavailable, UpstreamFailed } from '../../errors.ts';
import { type Clock, secondsOf } from '../../lib/clock.ts';
import { createSingleFlight } from '../../lib/tasks.ts';
import { type Decimal, formatDecimal, parseDecimal } from '../../lib/units.ts';
import type { Dated, Upstream, Upstreams } from '../client/client.ts';

export interface RateSource {
  /** At most 60 s old. Rejects with Unavailable (503, `btc_rate_unavailable`) unless two exchanges agree within 2 %. */
  current(): Promise<BtcUsd>;
}

export interface WatchedRates extends RateSource {
  /** Why the last reading found no rate, else null. Asks again once a minute: the fault ends also when nobody buys. */
  fault(): string | null;
}

interface BtcUsd {
  /** Decimal string: the median of three, or the mean of two that agree. */
  readonly rate: string;
  readonly exchanges: readonly { readonly name: string; readonly rate: string }[];
  /** When the oldest of the prices was read. */
  readonly retrievedAtMs: number;
}

const KEEP_MS = 60_000;
/** After a failure no exchange is asked for so long: Kraken takes about one request a second, invoices come faster. */
const REST_SECONDS = 5;
/** A ticker is some hundred bytes; a buyer waits for the slowest of the three. */
const BOUNDS = { timeoutMs: 3000, maxBytes: 64 * 1024, concurrency: 1, retries: 0 } as const;

/**
 * At most 60 s old: read from three exchanges, shared by concurrent callers. Implausible and old prices do not count.
 * Without agreement there is no rate: an older one never prices.
 */
export function createRateSource(
  clock: Clock,
  upstreams: Upstreams,
  urls: Config['markets']['exchanges'],
): WatchedRates {
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

async function attempt({ name, read }: { name: string; read(): Promise<BtcTicker> }) {
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

/** How far two prices may be apart, in percent of the lower one. */
const AGREE_PERCENT = 2n;

/** The median of three rates, or the mean of two within 2 %. Else null: of two that differ, either may be wrong. */
export function agreedRate(rates: readonly string[]): string | null {
  const [low, middle, high] = inOrder(rates);
  if (low === undefined || middle === undefined) return null;
  if (high !== undefined) return formatDecimal(middle);
  if (middle.digits * 100n > low.digits * (100n + AGREE_PERCENT)) return null;
  // Half of a decimal is five times it, one place on.
  return formatDecimal({ digits: (low.digits + middle.digits) * 5n, scale: low.scale + 1 });
}

/** The lowest first, all at one scale. */
function inOrder(rates: readonly string[]): Decimal[] {
  const parsed = rates.map((text) => parseDecimal(text) ?? { digits: 0n, scale: 0 });
  const scale = Math.max(...parsed.map((rate) => rate.scale));
  const aligned = parsed.map((rate) => ({ digits: rate.digits * 10n ** BigInt(scale - rate.scale), scale }));
  return aligned.sort((a, b) => (a.digits < b.digits ? -1 : Number(a.digits > b.digits)));
}

interface BtcTicker {
  /** Plain decimal text, within bounds that no real price leaves. */
  readonly rate: string;
  readonly retrievedAtMs: number;
}

/** Reads one exchange's ticker. Rejects with UpstreamFailed for anything but a plausible, current price. */
type ReadTicker = (upstream: Upstream, baseUrl: string) => Promise<BtcTicker>;

const coinbaseSchema = z.object({ price: z.string(), time: z.string().optional() });

const readCoinbase: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/products/BTC-USD/ticker`, coinbaseSchema);
  if (data.time !== undefined) checkAge(upstream, secondsOf(data.time), retrievedAtMs);
  return { rate: plausible(upstream, data.price), retrievedAtMs };
};

const krakenSchema = z.object({
  error: z.array(z.string()),
  result: z.record(z.string(), z.object({ c: z.tuple([z.string()]).rest(z.string()) })).optional(),
});

/** Kraken sends errors with HTTP 200, names the pair otherwise than asked, and gives no time. */
const readKraken: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/0/public/Ticker?pair=XBTUSD`, krakenSchema);
  const [entry] = Object.entries(data.result ?? {});
  if (data.error.length > 0 || entry === undefined) throw new UpstreamFailed(upstream.name, 'answered with an error');
  const [pair, { c: lastTrade }] = entry;
  if (!pair.endsWith('USD')) throw new UpstreamFailed(upstream.name, 'answered for another pair');
  return { rate: plausible(upstream, lastTrade[0]), retrievedAtMs };
};

const bitstampSchema = z.object({ last: z.string(), timestamp: z.string().regex(/^\d{1,12}$/) });

/** `timestamp` is Unix seconds as text. Without the path's last slash there is a redirect. */
const readBitstamp: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/api/v2/ticker/btcusd/`, bitstampSchema);
  checkAge(upstream, Number(data.timestamp), retrievedAtMs);
  return { rate: plausible(upstream, data.last), retrievedAtMs };
};

const EXCHANGES: readonly { name: string; key: keyof Config['markets']['exchanges']; read: ReadTicker }[] = [
  { name: 'Coinbase', key: 'coinbase', read: readCoinbase },
  { name: 'Kraken', key: 'kraken', read: readKraken },
  { name: 'Bitstamp', key: 'bitstamp', read: readBitstamp },
];

async function ask<T>(upstream: Upstream, url: string, schema: z.ZodType<T>): Promise<Dated<T>> {
  const answer = await upstream.jsonDated({ url }, schema);
  if (answer === null) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
  return answer;
}

/** The plausible prices in dollars. Bitcoin's have been orders of magnitude away from both since 2013. */
const LOWEST = 100n;
const HIGHEST = 100_000_000n;
/** More digits than any exchange quotes. */
const MAX_DIGITS = 24;

function plausible({ name }: Upstream, text: string): string {
  const price = text.length <= MAX_DIGITS ? parseDecimal(text) : null;
  const one = 10n ** BigInt(price?.scale ?? 0);
  if (price === null || price.digits < LOWEST * one || price.digits > HIGHEST * one) {
    throw new UpstreamFailed(name, 'answered a price that cannot be');
  }
  return formatDecimal(price);
}

/** Bitcoin trades every few seconds. An older price comes from a halted market or from a cache. */
const MAX_AGE_SECONDS = 10 * 60;

/** A time far in the future is refused like an old one, because it does not show when the price was made. */
function checkAge({ name }: Upstream, at: number | null, nowMs: number): void {
  const isRecent = at !== null && Math.abs(nowMs / 1000 - at) <= MAX_AGE_SECONDS;
  if (!isRecent) throw new UpstreamFailed(name, 'answered a price of another time');
}
