import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import { formatDecimal, parseDecimal } from '../../lib/units.ts';
import type { Dated, Upstream } from '../client/http.ts';

/** The last trade of BTC/USD at one exchange. */
export interface BtcTicker {
  /** Plain decimal text, within bounds that no real price leaves. */
  readonly rate: string;
  /** When it was read, Unix milliseconds. */
  readonly retrievedAtMs: number;
}

/** Reads one exchange's ticker. Rejects with UpstreamFailed for anything but a plausible, current price. */
export type ReadTicker = (upstream: Upstream, baseUrl: string) => Promise<BtcTicker>;

/** The plausible prices. A price outside is a fault of the exchange or a bug: it is orders of magnitude away from bitcoin's prices since 2013. */
const LOWEST = 100n;
const HIGHEST = 100_000_000n;
/** More digits than any exchange quotes. */
const MAX_DIGITS = 24;
/** Bitcoin trades every few seconds. An older price comes from a halted market or from a cache. */
const MAX_AGE_SECONDS = 10 * 60;

const coinbaseSchema = z.object({ price: z.string(), time: z.string().optional() });

/** Coinbase Exchange: `price` is the last trade, `time` that trade's. */
export const readCoinbase: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/products/BTC-USD/ticker`, coinbaseSchema);
  if (data.time !== undefined) checkAge(upstream, secondsOf(data.time), retrievedAtMs);
  return { rate: plausible(upstream, data.price), retrievedAtMs };
};

const krakenSchema = z.object({
  error: z.array(z.string()),
  result: z.record(z.string(), z.object({ c: z.tuple([z.string()]).rest(z.string()) })).optional(),
});

/** Kraken sends errors with HTTP 200, and names the pair otherwise than the request. It gives no time. */
export const readKraken: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/0/public/Ticker?pair=XBTUSD`, krakenSchema);
  const [entry] = Object.entries(data.result ?? {});
  if (data.error.length > 0 || entry === undefined) throw new UpstreamFailed(upstream.name, 'answered with an error');
  const [pair, { c: lastTrade }] = entry;
  if (!pair.endsWith('USD')) throw new UpstreamFailed(upstream.name, 'answered for another pair');
  return { rate: plausible(upstream, lastTrade[0]), retrievedAtMs };
};

const bitstampSchema = z.object({ last: z.string(), timestamp: z.string().regex(/^\d{1,12}$/) });

/** Bitstamp: `timestamp` in Unix seconds as text. The path keeps its last slash; without it there is a redirect. */
export const readBitstamp: ReadTicker = async (upstream, baseUrl) => {
  const { data, retrievedAtMs } = await ask(upstream, `${baseUrl}/api/v2/ticker/btcusd/`, bitstampSchema);
  checkAge(upstream, Number(data.timestamp), retrievedAtMs);
  return { rate: plausible(upstream, data.last), retrievedAtMs };
};

async function ask<T>(upstream: Upstream, url: string, schema: z.ZodType<T>): Promise<Dated<T>> {
  const answer = await upstream.jsonDated({ url }, schema);
  if (answer === null) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
  return answer;
}

function plausible({ name }: Upstream, text: string): string {
  const price = text.length <= MAX_DIGITS ? parseDecimal(text) : null;
  const one = 10n ** BigInt(price?.scale ?? 0);
  if (price === null || price.digits < LOWEST * one || price.digits > HIGHEST * one) {
    throw new UpstreamFailed(name, 'answered a price that cannot be');
  }
  return formatDecimal(price);
}

/** A time far in the future is refused like an old one, because it does not show when the price was made. */
function checkAge({ name }: Upstream, at: number | null, nowMs: number): void {
  const isRecent = at !== null && Math.abs(nowMs / 1000 - at) <= MAX_AGE_SECONDS;
  if (!isRecent) throw new UpstreamFailed(name, 'answered a price of another time');
}
