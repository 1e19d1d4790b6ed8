import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Bolt11Invoice, Result_Bolt11InvoiceParseOrSemanticErrorZ_OK } from 'lightningdevkit';
import { MAINNET, TESTNET } from '../../src/payment/lightning/terms.ts';
import {
  type JsonAnswer,
  type JsonRequest,
  type LoopbackServer,
  refusal,
  startJsonServer,
  startLndRest,
} from './lnd-rest.ts';
import { createWorld, type World } from './world.ts';

export interface EmbeddedLightningOptions {
  /** The currency of the invoices. The coins have no value on either network. */
  network?: 'mainnet' | 'testnet';
  /** The price of a bitcoin in dollars at the simulated exchanges. */
  usd?: string;
}

/** Two Lightning nodes with a channel. The seller's node has LND's REST interface; the buyer's node pays by a URL. */
export interface EmbeddedLightning {
  /** As x402 names it, `lnbtc:…`. */
  readonly network: string;
  readonly networkName: 'mainnet' | 'testnet';
  /** The seller's node: 66 hex characters. */
  readonly nodeId: string;
  /** LND's REST interface of the seller's node. `macaroon` (hex) authorises requests and cannot spend. */
  readonly lndUrl: string;
  readonly macaroon: string;
  /** POST `{ invoice }` makes the buyer's node pay it. The answer is `{ preimage }`, or 4xx with `{ error }`. */
  readonly payUrl: string;
  /** Stand-ins for the exchanges that price a bitcoin. */
  readonly exchanges: { readonly urls: { coinbase: string; kraken: string; bitstamp: string }; set(usd: string): void };
  /** Pays from the buyer's node and resolves with the preimage in hex. For a paid invoice it resolves with the same preimage and pays nothing. */
  pay(invoice: string): Promise<string>;
  /** Moves the nodes' time forward, never back: Unix seconds. Without it they follow the wall clock. */
  setTime(seconds: number): void;
  /** Safe to call twice. */
  stop(): Promise<void>;
}

const USD = '64000';
/** The chain starts so long before the present, because the blocks that open the channel are a second apart and must not be in the future. */
const BEFORE_SECONDS = 3600;

/** Starts the nodes, opens their channel and serves them on loopback; takes about a second, and 150 MB. */
export async function startEmbeddedLightning(options: EmbeddedLightningOptions = {}): Promise<EmbeddedLightning> {
  const { network = 'mainnet', usd = USD } = options;
  const world = await createWorld(network, wallSeconds() - BEFORE_SECONDS);
  const nodeId = Buffer.from(world.receiver.id).toString('hex');
  const pay = createWallet(world);
  const started: { stop(): Promise<void> }[] = [];
  const keep = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    started.push(part);
    return part;
  };
  let stopped: Promise<unknown> | null = null;
  const stop = async (): Promise<void> => {
    stopped ??= Promise.all(started.map((part) => part.stop()));
    await stopped;
  };
  try {
    const { received } = world.receiver;
    const createInvoice: World['createInvoice'] = (order) => {
      world.chain.advanceTo(wallSeconds());
      return world.createInvoice(order);
    };
    const face = await keep(startLndRest({ nodeId, network, createInvoice, hashOf, received }));
    const payer = await keep(startPayer(pay));
    const exchanges = await keep(startExchanges({ usd }));
    return {
      network: (network === 'mainnet' ? MAINNET : TESTNET).id,
      networkName: network,
      nodeId,
      lndUrl: face.url,
      macaroon: face.macaroon,
      payUrl: `${payer.url}/pay`,
      exchanges,
      pay,
      setTime: (seconds) => world.chain.advanceTo(seconds),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The buyer's wallet. It pays each invoice once, also for repeated and concurrent calls. */
function createWallet(world: World): (invoice: string) => Promise<string> {
  const paid = new Map<string, Promise<string>>();
  const payOnce = async (invoice: string): Promise<string> => {
    world.chain.advanceTo(wallSeconds());
    return Buffer.from(await world.pay(invoice)).toString('hex');
  };
  return (invoice) => {
    const known = paid.get(invoice);
    if (known) return known;
    const paying = payOnce(invoice);
    paid.set(invoice, paying);
    paying.catch(() => paid.delete(invoice));
    return paying;
  };
}

function startPayer(pay: (invoice: string) => Promise<string>): Promise<LoopbackServer> {
  return startJsonServer(async ({ line, body }: JsonRequest): Promise<JsonAnswer> => {
    if (line !== 'POST /pay') return refusal(404, 'POST /pay is all there is');
    if (typeof body.invoice !== 'string') return refusal(400, 'invoice is missing');
    try {
      return { status: 200, body: { preimage: await pay(body.invoice) } };
    } catch (error) {
      return refusal(402, error instanceof Error ? error.message : String(error));
    }
  });
}

function hashOf(invoice: string): string {
  const read = Bolt11Invoice.constructor_from_str(invoice);
  if (!(read instanceof Result_Bolt11InvoiceParseOrSemanticErrorZ_OK))
    throw new Error('the node made no BOLT11 invoice');
  return Buffer.from(read.res.payment_hash()).toString('hex');
}

function wallSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Stand-ins for the three exchanges at which the bitcoin price is read. */
interface Exchanges {
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
    ask: usd,
    bid: usd,
    price: usd,
    volume: '2731.40518822',
    trade_id: 1_101_000_001,
    size: '0.00125',
    time: new Date(nowMs).toISOString(),
  }),
  '/kraken/0/public/Ticker?pair=XBTUSD': (usd) => ({
    error: [],
    result: {
      XXBTZUSD: {
        a: [usd, '1', '1.000'],
        b: [usd, '2', '2.000'],
        c: [usd, '0.00250000'],
        v: ['811.02', '1640.77'],
        p: [usd, usd],
        t: [51_002, 101_774],
        l: [usd, usd],
        h: [usd, usd],
        o: usd,
      },
    },
  }),
  '/bitstamp/api/v2/ticker/btcusd/': (usd, nowMs) => ({
    timestamp: String(Math.floor(nowMs / 1000)),
    open: usd,
    high: usd,
    low: usd,
    last: usd,
    vwap: usd,
    bid: usd,
    ask: usd,
    open_24: usd,
    volume: '1204.88120000',
    side: '0',
    percent_change_24: '0.00',
    market_type: 'SPOT',
  }),
};
