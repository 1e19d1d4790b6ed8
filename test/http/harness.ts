import { once } from 'node:events';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type AppDeps, buildApp } from '../../src/app.ts';
import { defineEndpoint, type Endpoint } from '../../src/catalogue/endpoint.ts';
import { integerParam } from '../../src/catalogue/params.ts';
import { loadConfig } from '../../src/config.ts';
import { createDiscovery } from '../../src/discovery/discovery.ts';
import { NO_CATALOGUE } from '../../src/discovery/foreign-catalogue.ts';
import { createMarket, type Market } from '../../src/discovery/market.ts';
import { createCaller } from '../../src/discovery/market-probe.ts';
import { NotFound } from '../../src/errors.ts';
import { createFacilitator } from '../../src/facilitator/facilitator.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/common.ts';
import { createUsdcCheckout, http402 } from '../../src/payment/checkout.ts';
import { createGate } from '../../src/payment/gate.ts';
import type { PricedSurface } from '../../src/routes/paid.ts';
import { offersUnder, usdcProtocol, wordsOfRefusal } from '../../src/wiring/surfaces.ts';
import { openMemoryLedger, storesOf } from '../support/ledger/fresh-ledger.ts';
import { runningWith } from '../support/payment/call.ts';

/** The least that configures the service; nothing listens at the RPC address. */
export const ENV = {
  NETWORK: 'custom',
  CHAIN_ID: '5042',
  RPC_URLS: 'http://127.0.0.1:1',
  USDC_ADDRESS: `0x36${'0'.repeat(38)}`,
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
};

/** A clock that moves only when the test moves it. */
export function createStillClock(startMs = 1_800_000_000_000) {
  const clock = { now: startMs, nowMs: () => clock.now, sleep: async () => {} };
  return clock satisfies Clock & { now: number };
}

/** A free endpoint that answers how often it was computed. */
export function countingEndpoint(work: () => Promise<void> = async () => {}, cacheMs = 1000) {
  const calls = { count: 0 };
  const endpoint = defineEndpoint({
    path: '/chain/count',
    access: 'free',
    label: 'Count',
    summary: 'How often this was computed.',
    notFor: null,
    tags: null,
    ofChain: false,
    params: z.object({ n: integerParam({ min: 1, max: 9, default: 1, description: 'Any digit' }) }),
    result: z.object({ n: z.int(), computed: z.int() }),
    example: { params: { n: '3' }, result: { n: 3, computed: 1 } },
    cacheMs,
    async run({ n }) {
      calls.count += 1;
      const computed = calls.count;
      await work();
      return { n, computed };
    },
  });
  return { endpoint: endpoint as Endpoint<object>, calls };
}

/** A priced endpoint. No request passes its gate here. */
export const pricedEndpoint: Endpoint<object> = defineEndpoint({
  path: '/chain/thing',
  access: 'paid',
  onlyOn: 'paid',
  priceUsd: '0.002',
  label: 'Thing',
  summary: 'A thing.',
  notFor: null,
  tags: '',
  ofChain: false,
  params: z.object({ id: z.string().meta({ description: 'Which one' }) }),
  result: z.object({ id: z.string() }),
  example: { params: { id: 'a' }, result: { id: 'a' } },
  run: async ({ id }) => ({ id }),
});

interface Options {
  market?: Market;
  env?: Record<string, string>;
  catalogue?: readonly Endpoint<object>[];
  clock?: Clock;
  readiness?: AppDeps<object>['readiness'];
  /** More routes in the priced group. */
  extra?: (app: FastifyInstance) => unknown;
}

/** The application with its real gate, on endpoints of the test. `lines` holds its log. */
export async function createTestApp(options: Options = {}) {
  const { catalogue = [countingEndpoint().endpoint, pricedEndpoint], clock = createStillClock() } = options;
  const config = loadConfig({ ...ENV, LOG_LEVEL: 'debug', ...options.env });
  const { lines, destination } = captureLog();
  const gate = createGate<object>({
    checkoutOf: (endpoint) =>
      createUsdcCheckout(endpoint, {
        offer: () => offersUnder(config)(endpoint),
        railFor: () => {
          throw new Error('this test sells nothing');
        },
        write: http402(endpoint, {}),
        running: runningWith({}),
        words: wordsOfRefusal,
      }),
    protocol: usdcProtocol,
    log: createLogger(config.logLevel, destination),
  });
  const priced: PricedSurface<object> = { surface: 'paid', gate, catalogue, chainSegment: config.network.segment };
  const ledgerDb = openMemoryLedger();
  const log = createLogger(config.logLevel, destination);
  const payable = { network: config.network.caip2, usdc: config.network.usdc };
  const { publicOrigin } = config;
  // Calls a seller only when a test submits one.
  const caller = createCaller({
    dial: { resolve: async () => [] },
    userAgent: 'test',
    timeoutMs: 1000,
    payable,
    publicOrigin,
  });
  const store = storesOf(ledgerDb).market;
  const market =
    options.market ?? createMarket({ store, caller, network: payable.network, limits: config.market, clock, log });
  const app = await buildApp<object>({
    config,
    clock,
    log,
    sources: {},
    listed: catalogue,
    metrics: createMetrics(),
    offerOf: offersUnder(config),
    readiness: options.readiness ?? (async () => ({ ready: true, failing: [], checks: { store: { ok: true } } })),
    market,
    discovery: createDiscovery({
      own: [],
      market,
      catalogue: NO_CATALOGUE,
      readsCatalogue: () => false,
      network: config.network.caip2,
      clock,
      log,
      isReady: async () => true,
    }),
    facilitator: createFacilitator({
      store: storesOf(ledgerDb).lightning,
      clock,
      config: config.facilitator,
      publicOrigin: config.publicOrigin,
      ownPayTo: () => null,
      log,
    }),
    lookup: () => Promise.reject(new NotFound('Nothing was paid here.')),
    paid: priced,
    // It describes the rail and sells nothing.
    lightning: { ...priced, surface: 'lightning', catalogue: [], describe: async () => ({}) },
    mpp: null,
    async moreRoutes(scope, { limits }) {
      limits.priced(scope);
      options.extra?.(scope);
    },
  });
  return { app, lines };
}

/** A log destination that keeps its lines, parsed. */
export function captureLog() {
  const lines: Record<string, unknown>[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).trim().split('\n')) lines.push(JSON.parse(line));
      done();
    },
  });
  return { lines, destination };
}

/** Sends raw bytes and returns everything that the server sends until it closes. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(bytes);
  return text(socket);
}

/** Listens on a free port of loopback. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return address.port;
}
