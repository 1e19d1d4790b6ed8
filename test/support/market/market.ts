import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMarket, type MarketLimits } from '../../../src/discovery/market.ts';
import { createCaller } from '../../../src/discovery/market-probe.ts';
import { createMarketSchedule } from '../../../src/discovery/market-schedule.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';
import { createManualClock } from '../manual-clock.ts';
import { type Recorded, startReplay, TEST_CA } from '../upstream/replay.ts';

export const HOUR_MS = 3_600_000;
export const NETWORK = 'eip155:5042';
export const USDC = `0x36${'0'.repeat(38)}`;
export const PAY_TO = `0x${'ab'.repeat(20)}`;
export const ORIGIN = 'https://us.good.example';

/** An entry of `accepts` that any stock client can pay. `more` overrides members; undefined removes one. */
export function accept(more: Record<string, unknown> = {}): Record<string, unknown> {
  const extra = { name: 'USDC', version: '2' };
  return {
    scheme: 'exact',
    network: NETWORK,
    asset: USDC,
    amount: '2000',
    payTo: PAY_TO,
    maxTimeoutSeconds: 300,
    extra,
    ...more,
  };
}

export const GATEWAY_EXTRA = { name: 'GatewayWalletBatched', version: '1', verifyingContract: `0x${'77'.repeat(20)}` };

export function base64(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');
}

/** A version 2 challenge. */
export function challenge(accepts: readonly unknown[] = [accept()], more: object = {}): Recorded {
  const header = base64({ x402Version: 2, error: 'Payment required', accepts, ...more });
  return { status: 402, headers: { 'payment-required': header }, body: '{}' };
}

/** A version 1 challenge: everything is in the body. */
export function challengeV1(accepts: readonly unknown[] = [acceptV1()]): Recorded {
  return { status: 402, body: JSON.stringify({ x402Version: 1, error: 'X-PAYMENT header is required', accepts }) };
}

export function acceptV1(more: Record<string, unknown> = {}): Record<string, unknown> {
  return accept({ amount: undefined, maxAmountRequired: '3000', resource: 'https://a.good.example/v1', ...more });
}

interface Options {
  readonly answers?: Record<string, Recorded | (() => Recorded | Promise<Recorded>)>;
  readonly limits?: Partial<MarketLimits>;
  readonly timeoutMs?: number;
  readonly startMs?: number;
  /** More host names of the seller that has no TLS. */
  readonly plainHosts?: readonly string[];
}

/** A market on a real ledger file, and two sellers on loopback: *.good.example with TLS and plain.example without. */
export async function openMarket({
  answers = {},
  limits,
  timeoutMs = 60_000,
  startMs = 1_800_000_000_000,
  plainHosts = [],
}: Options = {}) {
  const sellers = await startReplay(answers, { tls: true });
  const plain = await startReplay(answers);
  const hosts = ['a', 'b', 'c', 'us'].map((name) => `${name}.good.example`);
  const testHosts = new Map(hosts.map((name) => [name, { address: '127.0.0.1', port: sellers.port }]));
  for (const name of ['plain.example', ...plainHosts]) testHosts.set(name, { address: '127.0.0.1', port: plain.port });
  const folder = mkdtempSync(join(tmpdir(), 'percall-market-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  const store = storesOf(db).market;
  const clock = createManualClock(startMs);
  const lines: [object, string][] = [];
  const write = (fields: object, message: string) => lines.push([fields, message]);
  const log = { info: write, error: write };
  const caller = createCaller({
    dial: { resolve: async () => [], testHosts, ca: TEST_CA, ownHosts: new Set(['us.good.example']) },
    userAgent: 'percall/0 (+https://us.good.example)',
    timeoutMs,
    payable: { network: NETWORK, usdc: USDC },
    publicOrigin: ORIGIN,
  });
  const bounds = { probeIntervalMs: HOUR_MS, submitsPerHour: 0, maxListings: 100, maxPerHost: 100, ...limits };
  const market = createMarket({ store, caller, network: NETWORK, limits: bounds, clock, log });
  const intervalMs = bounds.probeIntervalMs;
  const schedule = createMarketSchedule({ store, caller, clock, intervalMs, log, onRound: market.refresh });
  return {
    market,
    schedule,
    store,
    caller,
    sellers,
    plain,
    clock,
    lines,
    submit: (url: unknown, client = '192.0.2.1') => market.submit(url, client),
    /** Advances the clock by whole intervals. After each one every due listing has been called. */
    async hours(count: number) {
      for (let hour = 0; hour < count; hour += 1) {
        await clock.advance(intervalMs);
        await schedule.runDue(new AbortController().signal);
      }
    },
    close: async () => {
      await market.stop();
      await schedule.stop();
      await sellers.stop();
      await plain.stop();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type OpenMarket = Awaited<ReturnType<typeof openMarket>>;
