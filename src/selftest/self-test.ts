import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, servedPaths } from '../catalogue/paths.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { SelfTestStore } from '../store/ports/selftest.ts';
import { createRun, type PricedCall } from './one-run.ts';
import { createSchedule } from './schedule.ts';

interface SelfTestOptions {
  readonly config: Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'selfTest'>;
  readonly chain: ChainClient;
  readonly store: SelfTestStore;
  readonly catalogue: readonly Endpoint<never>[];
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  /** Whether this process may run it now, when one of several does. Always by default. */
  mayRun?(): boolean;
  /** Called with the result of each run. Must not throw. */
  onRun?(isOk: boolean): void;
  readonly random?: () => number;
}

/** The running self-test. */
export interface SelfTest {
  /** Does one run and stores its result, unless the signal aborted it; never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Returns at once; the first run follows in some seconds. Call it when the service listens. */
  start(): void;
  /**
   * Aborts the current run and returns when none runs any more. Call it before the service stops listening; otherwise a run would report the stop as
   * a fault.
   */
  stop(): Promise<void>;
}

/** Must answer 500 after its payment was verified. */
const FAILING_PATH = '/v1/paid/selftest/fail';
/** A purchase takes one or two seconds, and so does the wait after the failing call. */
const RUN_MS = 30_000;
/** Some seconds after the start, because the chain client and the collector first select their providers. */
const FIRST_MS = 5000;
const KEEP_MS = 30 * 86_400_000;

/**
 * Makes the self-test. The service's own wallet buys the service's own endpoint through the public URL and the gate, like any buyer.
 * Then it calls an endpoint that must fail without charging.
 * Null without a wallet. Rejects when the configured endpoint is not for sale. The buyer's client is loaded only with a wallet, because it is a tenth of
 * a start's work.
 */
export async function createSelfTest(options: SelfTestOptions): Promise<SelfTest | null> {
  const { config, chain, store, catalogue, clock, log, onRun, mayRun = () => true, random = Math.random } = options;
  const { network, seller, publicOrigin, selfTest } = config;
  if (selfTest.privateKey === null) return null;
  const priced = (path: string): PricedCall => ({
    url: publicOrigin + path,
    units: listedUnits(catalogue, path, network.segment),
  });
  const { createStockBuyer } = await import('./stock-buyer.ts');
  const { createWalletReads } = await import('./wallet-reads.ts');
  const buyer = createStockBuyer({
    privateKey: selfTest.privateKey,
    network: network.caip2,
    asset: network.usdc,
    seller,
  });
  // A payment from the seller to itself would not change its balance, and a run checks the balance.
  if (buyer.address === seller.toLowerCase())
    throw new Error('the self-test’s wallet is the seller’s: give it one of its own');
  const once = createRun({
    buyer,
    reads: createWalletReads({ chain, usdc: network.usdc, wallet: buyer.address, seller, clock }),
    paid: priced(selfTest.path),
    failing: priced(FAILING_PATH),
    timeoutMs: RUN_MS,
    clock,
    log,
  });

  async function run(signal: AbortSignal): Promise<void> {
    try {
      const result = await once(signal);
      if (result === null) return;
      onRun?.(result.ok);
      if (!result.ok) log.warn({ reason: result.reason }, 'the self-test failed');
      await store.record(result, clock.nowMs() - KEEP_MS);
    } catch (error) {
      log.warn({ err: error }, 'a result of the self-test was lost');
    }
  }

  const { intervalMs } = selfTest;
  const task = async (signal: AbortSignal) => (mayRun() ? run(signal) : undefined);
  return { run, ...createSchedule({ task, clock, firstMs: FIRST_MS, intervalMs, random }) };
}

/** The listed price of a USDC route, under any of its paths. */
function listedUnits(catalogue: readonly Endpoint<never>[], path: string, segment: string): bigint {
  const [asked = ''] = path.split('?');
  const entry = entriesOn(catalogue, 'paid').find((endpoint) => servedPaths(endpoint, 'paid', segment).includes(asked));
  if (!entry?.price) throw new Error(`the self-test cannot buy ${asked}: it is not sold for USDC`);
  return entry.price.units;
}
