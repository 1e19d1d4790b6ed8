import type { Clock } from '../lib/clock.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { SelfTestRun } from '../store/ports/selftest.ts';
import { SelfTestFault } from './fault.ts';
import type { StockBuyer } from './stock-buyer.ts';
import type { WalletReads } from './wallet-reads.ts';

/** A call and its listed price in USDC base units. */
export interface PricedCall {
  readonly url: string;
  readonly units: bigint;
}

interface RunOptions {
  readonly buyer: StockBuyer;
  readonly reads: WalletReads;
  /** What is bought. */
  readonly paid: PricedCall;
  /** What answers 500 after its payment was verified, and costs nothing. */
  readonly failing: PricedCall;
  /** For the whole run. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
}

/** How many blocks the failing call is watched after its answer: a settlement sent behind its back is mined by then. */
const WATCH_BLOCKS = 3;

type Findings = { -readonly [K in 'latencyMs' | 'transaction' | 'notCharged']: SelfTestRun[K] };

/** Makes the function that does one run and says how it went; null when the signal ended it, which says nothing of the service. */
export function createRun(options: RunOptions) {
  const { timeoutMs, clock, log } = options;

  return async (signal: AbortSignal): Promise<SelfTestRun | null> => {
    const at = clock.nowMs();
    const late = new AbortController();
    const done = new AbortController();
    // Whether it rings or is called off, nobody waits for it.
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
      // Whatever was interrupted has an error of its own for it.
      if (late.signal.aborted) return failed('timed_out');
      log.warn({ err: error }, 'the self-test could not go on');
      return failed('internal_error');
    } finally {
      done.abort();
    }
  };
}

/**
 * 1. The wallet must afford both calls; only then does a refusal say something of the service.
 * 2. The call is bought: 200, with a receipt.
 * 3. The receipt's transaction is on the chain and holds exactly the price, from the wallet to the seller, by this authorization.
 * 4. The failing call is shown a payment of its own. What follows is looked at whatever it answered.
 * 5. Some blocks later that authorization is unused, and the wallet holds exactly the price of the first call less.
 * 6. Only an answer of 500 proves something: any other than that did not get as far as the handler.
 * Throws SelfTestFault at the first thing that is not so; what was found before stands in `findings`.
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
