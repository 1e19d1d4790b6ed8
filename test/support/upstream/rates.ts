import { createUpstreams, type Upstreams } from '../../../src/upstream/client/client.ts';
import { createRateSource } from '../../../src/upstream/rates/bitcoin.ts';
import { PATIENT_MS, type SourceOptions } from './patience.ts';
import { portFor, type Recorded, type Replay, startReplay } from './replay.ts';

/** A moment a little after the tickers below were made. */
export const NOW = Date.parse('2026-11-20T12:00:00Z');

/** Where each exchange is asked. */
export const PATHS = {
  coinbase: '/products/BTC-USD/ticker',
  kraken: '/0/public/Ticker?pair=XBTUSD',
  bitstamp: '/api/v2/ticker/btcusd/',
} as const;
export type ExchangeKey = keyof typeof PATHS;
export const KEYS: readonly ExchangeKey[] = ['coinbase', 'kraken', 'bitstamp'];

/** Hand-written answers in the documented shapes, at a price. */
export const TICKERS: Record<ExchangeKey, (usd: unknown) => Record<string, unknown>> = {
  coinbase: (usd) => ({
    ask: '1',
    bid: '1',
    volume: '2',
    trade_id: 3,
    price: usd,
    time: '2026-11-20T11:59:58.123456789Z',
  }),
  kraken: (usd) => ({ error: [], result: { XXBTZUSD: { a: ['1', '1', '1.0'], c: [usd, '0.1'], t: [1, 2], o: '1' } } }),
  bitstamp: (usd) => ({ timestamp: String(NOW / 1000 - 31), open: '1', last: usd, side: '0', market_type: 'SPOT' }),
};

/** The real rate source over three local exchanges with a clock that the test moves. */
export async function startRates({ timeoutMs = PATIENT_MS, fault = null }: SourceOptions = {}) {
  const servers = {} as Record<ExchangeKey, Replay>;
  for (const key of KEYS) servers[key] = await startReplay({}, { port: await portFor(fault) });
  const time = { nowMs: NOW };
  const clock = { nowMs: () => time.nowMs, sleep: async () => undefined };
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test (+http://127.0.0.1; test@example.org)' });
  const timed: Upstreams = {
    ...upstreams,
    open: (options) => upstreams.open({ ...options, timeoutMs }),
  };
  const urls = { coinbase: servers.coinbase.url, kraken: servers.kraken.url, bitstamp: servers.bitstamp.url };
  return {
    servers,
    time,
    source: createRateSource(clock, timed, urls),
    /** Sets the answers of an exchange. Any other request gets 404. */
    answer(key: ExchangeKey, recorded: Recorded) {
      servers[key].answers[PATHS[key]] = recorded;
    },
    /** Sets the prices of all three; null makes an exchange fail. */
    quote(prices: readonly (string | null)[]) {
      KEYS.forEach((key, at) => {
        const usd = prices[at] ?? null;
        const body = usd === null ? { status: 500 } : { body: JSON.stringify(TICKERS[key](usd)) };
        servers[key].answers[PATHS[key]] = body;
      });
    },
    asked: () => KEYS.map((key) => servers[key].received.length),
    stop: async () => {
      await upstreams.close();
      for (const key of KEYS) await servers[key].stop();
    },
  };
}

export type Rates = Awaited<ReturnType<typeof startRates>>;
