import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stand-ins for the three exchanges at which the bitcoin price is read. */
export interface Exchanges {
  /** For `UPSTREAM_COINBASE_URL` and its siblings. */
  readonly urls: { readonly coinbase: string; readonly kraken: string; readonly bitstamp: string };
  /** Sets the price at all three exchanges, in decimal dollars. */
  set(usd: string): void;
  stop(): Promise<void>;
}

/**
 * Serves the tickers of Coinbase Exchange, Kraken and Bitstamp in their documented shapes on loopback, all at one price,
 * so that a demonstration or a test can price in sats without the internet. `nowMs` dates the prices.
 */
export async function startExchanges({
  usd,
  nowMs = Date.now,
}: {
  usd: string;
  nowMs?: () => number;
}): Promise<Exchanges> {
  let price = usd;
  const server = createServer((request, response) => {
    const body = TICKERS[request.url ?? '']?.(price, nowMs());
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { message: 'NotFound' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    urls: { coinbase: `${origin}/coinbase`, kraken: `${origin}/kraken`, bitstamp: `${origin}/bitstamp` },
    set(next) {
      price = next;
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** The tickers by exact path and query. Any other spelling is 404, as at the exchanges themselves. */
const TICKERS: Record<string, (usd: string, nowMs: number) => unknown> = {
  '/coinbase/products/BTC-USD/ticker': (usd, nowMs) => ({
    ...{ ask: usd, bid: usd, price: usd },
    ...{ volume: '2731.40518822', trade_id: 1_101_000_001, size: '0.00125' },
    time: new Date(nowMs).toISOString(),
  }),
  '/kraken/0/public/Ticker?pair=XBTUSD': (usd) => ({
    error: [],
    result: {
      XXBTZUSD: {
        ...{ a: [usd, '1', '1.000'], b: [usd, '2', '2.000'], c: [usd, '0.00250000'] },
        ...{ v: ['811.02', '1640.77'], p: [usd, usd], t: [51_002, 101_774], l: [usd, usd], h: [usd, usd], o: usd },
      },
    },
  }),
  '/bitstamp/api/v2/ticker/btcusd/': (usd, nowMs) => ({
    timestamp: String(Math.floor(nowMs / 1000)),
    ...{ open: usd, high: usd, low: usd, last: usd, vwap: usd, bid: usd, ask: usd, open_24: usd },
    ...{ volume: '1204.88120000', side: '0', percent_change_24: '0.00', market_type: 'SPOT' },
  }),
};
