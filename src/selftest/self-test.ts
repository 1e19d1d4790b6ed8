import { Counter, type Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, servedPaths } from '../catalogue/paths.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { hexToBytes } from '../lib/hex.ts';
import { createLoop } from '../lib/tasks.ts';
import type { SelfTestRun, SelfTestStore } from '../store/ports/stores.ts';
import type { StockBuyer, WalletReads } from './buyer.ts';

// The service buys from itself, by default each hour: a priced call, and one that must fail after its payment was
// presented. The chain shows what moved. The result is counted, stored and, where it failed, logged.

interface SelfTestOptions {
  readonly config: Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'selfTest'>;
  readonly chain: ChainClient;
  readonly store: SelfTestStore;
  readonly catalogue: readonly Endpoint<never>[];
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  /** Whether this process may run it now, where one of several does. By default always. */
  mayRun?(): boolean;
  /** Called with the outcome of each run. Must not throw. */
  onRun?(isOk: boolean): void;
  readonly random?: () => number;
}

interface SelfTest {
  /** One run, with its result stored unless the signal aborted it. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Returns at once; the first run follows in some seconds. Call it when the service listens. */
  start(): void;
  /** Aborts the current run. Call it before the service stops listening: else the run would report a fault. */
  stop(): Promise<void>;
}

/** Must answer 500 after its payment was verified. */
const FAILING_PATH = '/v1/paid/selftest/fail';
/** A purchase takes one or two seconds, and so does the wait after the failing call. */
const RUN_MS = 30_000;
/** Some seconds, in which the chain client and the collector select their providers. */
const FIRST_MS = 5000;
const KEEP_MS = 30 * 86_400_000;

/** Null without a wallet: then the client, a tenth of a start, is not loaded. Rejects when the path is not for sale. */
export async function createSelfTest(options: SelfTestOptions): Promise<SelfTest | null> {
  const { config, chain, store, catalogue, clock, log, onRun, mayRun = () => true, random = Math.random } = options;
  const { network, seller, publicOrigin, selfTest } = config;
  if (selfTest.privateKey === null) return null;
  const priced = (path: string): PricedCall => ({
    url: publicOrigin + path,
    units: listedUnits(catalogue, path, network.segment),
  });
  const { createStockBuyer, createWalletReads } = await import('./buyer.ts');
  const { privateKey } = selfTest;
  const buyer = createStockBuyer({ privateKey, network: network.caip2, asset: network.usdc, seller });
  // A run checks the balance, which a payment from the seller to itself would not change.
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
  return { run, ...createSchedule(clock, task, FIRST_MS, intervalMs, random) };
}

/** A USDC route's listed price, under any of its paths. */
function listedUnits(catalogue: readonly Endpoint<never>[], path: string, segment: string): bigint {
  const [asked = ''] = path.split('?');
  const entry = entriesOn(catalogue, 'paid').find((endpoint) => servedPaths(endpoint, 'paid', segment).includes(asked));
  if (!entry?.price) throw new Error(`the self-test cannot buy ${asked}: it is not sold for USDC`);
  return entry.price.units;
}

/** A call, and its listed price in USDC base units. */
interface PricedCall {
  readonly url: string;
  readonly units: bigint;
}

interface RunOptions {
  readonly buyer: StockBuyer;
  readonly reads: WalletReads;
  readonly paid: PricedCall;
  readonly failing: PricedCall;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
}

/** Blocks to wait after the failing call: a settlement that was sent in spite of the failure would be mined by then. */
const WATCH_BLOCKS = 3;

type Findings = { -readonly [K in 'latencyMs' | 'transaction' | 'notCharged']: SelfTestRun[K] };

/** One run and its result; null when the signal ended it, because such a run says nothing of the service. */
export function createRun(options: RunOptions) {
  const { timeoutMs, clock, log } = options;

  return async (signal: AbortSignal): Promise<SelfTestRun | null> => {
    const at = clock.nowMs();
    const late = new AbortController();
    const done = new AbortController();
    // Not awaited: it ends when the time is up, or with the run.
    clock.sleep(timeoutMs, done.signal).then(
      () => late.abort(),
      () => undefined,
    );
    const findings: Findings = { latencyMs: null, transaction: null, notCharged: null };
    try {
      await attempt(options, findings, AbortSignal.any([signal, late.signal]));
      return { at, ok: true, ...findings, reason: null };
    } catch (error) {
      if (signal.aborted) return null;
      const failed = (reason: string): SelfTestRun => ({ at, ok: false, ...findings, reason });
      if (error instanceof SelfTestFault) return failed(error.reason);
      // Before the rest, because an interrupted call throws its own error.
      if (late.signal.aborted) return failed('timed_out');
      log.warn({ err: error }, 'a run of the self-test could not continue');
      return failed('internal_error');
    } finally {
      done.abort();
    }
  };
}

/**
 * 1. The wallet can afford both calls. Otherwise a refusal would say nothing of the service.
 * 2. The purchase answers 200, with a receipt.
 * 3. The receipt's transaction moved exactly the price from the wallet to the seller by this authorization.
 * 4. Another payment is presented to the failing call. The next checks run whatever it answers.
 * 5. Some blocks later this authorization is unused, and the wallet lost exactly the price of the first call.
 * 6. The answer was 500. Another one means that the call did not reach its handler.
 * Throws SelfTestFault at the first that does not hold. `findings` keeps the results up to there.
 */
async function attempt({ buyer, reads, paid, failing }: RunOptions, findings: Findings, signal: AbortSignal) {
  const before = await reads.at(await reads.head(signal), [], signal);
  if (before.balance < paid.units + failing.units) throw new SelfTestFault('wallet_short_of_funds');

  const purchase = await buyer.buy(paid.url, paid.units, signal);
  const { nonce, transaction } = purchase;
  if (purchase.fault !== null) throw new SelfTestFault(`purchase_${purchase.fault}`);
  if (purchase.status !== 200 || nonce === null) throw new SelfTestFault(`purchase_answered_${purchase.status}`);
  findings.latencyMs = purchase.latencyMs;
  if (transaction === null) throw new SelfTestFault('purchase_without_receipt');
  findings.transaction = hexToBytes(transaction);
  const payment = await reads.payment(transaction, nonce, paid.units, signal);
  if (!payment.holds) throw new SelfTestFault('transaction_is_no_payment');

  const failure = await buyer.buy(failing.url, failing.units, signal);
  const seen = Math.max(await reads.head(signal), payment.block) + WATCH_BLOCKS;
  await reads.untilBlock(seen, signal);
  const after = await reads.at(seen, failure.nonce === null ? [] : [failure.nonce], signal);
  const isUsed = after.used.includes(true);
  if (isUsed || before.balance - after.balance !== paid.units) {
    findings.notCharged = false;
    throw new SelfTestFault(isUsed ? 'failing_call_used_its_payment' : 'balance_differs');
  }
  if (failure.fault !== null) throw new SelfTestFault(`failing_call_${failure.fault}`);
  if (failure.status !== 500 || failure.nonce === null) {
    throw new SelfTestFault(`failing_call_answered_${failure.status}`);
  }
  findings.notCharged = true;
}

/** Ends a run early. `reason` is a code of ours: it is stored and published, so it never quotes a third party. */
class SelfTestFault extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.name = 'SelfTestFault';
    this.reason = reason;
  }
}

/** How much an interval may differ from the configured one, either way. */
const JITTER = 0.05;

/**
 * One run at a time; after a longer one the next follows at once. Varied by 5 %: most timers fire on the full hour.
 * `task` must not reject, and returns soon after the signal aborts. `intervalMs` is between two beginnings.
 */
export function createSchedule(
  clock: Clock,
  task: (signal: AbortSignal) => Promise<void>,
  firstMs: number,
  intervalMs: number,
  random: () => number,
) {
  async function step(signal: AbortSignal): Promise<number> {
    const next = clock.nowMs() + intervalMs * (1 + JITTER * (2 * random() - 1));
    await task(signal);
    return next - clock.nowMs();
  }

  const loop = createLoop(clock, step, firstMs);
  return { start: loop.start, stop: () => loop.stop(new Error('the self-test stops')) };
}

/** `selftest_runs_total{ok}`, for an alert. Both counts begin at 0: Prometheus sees no increase from nothing. */
export function countSelfTests(registry: Registry): (isOk: boolean) => void {
  const runs = new Counter({
    name: 'selftest_runs_total',
    help: 'Runs of the self-test, by whether all was well',
    labelNames: ['ok'],
    registers: [registry],
  });
  for (const ok of ['true', 'false']) runs.inc({ ok }, 0);
  return (isOk) => runs.inc({ ok: String(isOk) });
}
