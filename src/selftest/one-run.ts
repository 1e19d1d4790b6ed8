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
  /** The call that is bought. */
  readonly paid: PricedCall;
  /** The call that answers 500 after its payment was verified, and that must not be charged. */
  readonly failing: PricedCall;
  /** The time limit of a whole run. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
}

/** Blocks to wait after the failing call's answer. A settlement that the service sent in spite of the failure would be mined by then. */
const WATCH_BLOCKS = 3;

type Findings = { -readonly [K in 'latencyMs' | 'transaction' | 'notCharged']: SelfTestRun[K] };

/**
 * Makes the function that does one run and returns its result. Null when the signal ended the run, because such a run says nothing of the service.
 */
export function createRun(options: RunOptions) {
  const { timeoutMs, clock, log } = options;

  return async (signal: AbortSignal): Promise<SelfTestRun | null> => {
    const at = clock.nowMs();
    const late = new AbortController();
    const done = new AbortController();
    // Not awaited. The promise ends when the time is up or when the run cancels it.
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
      // An interrupted call throws its own error, so the time limit is checked first.
      if (late.signal.aborted) return failed('timed_out');
      log.warn({ err: error }, 'a run of the self-test could not continue');
      return failed('internal_error');
    } finally {
      done.abort();
    }
  };
}

/**
 * 1. Checks that the wallet can afford both calls. Otherwise a refusal would say nothing of the service.
 * 2. Buys the call: 200, with a receipt.
 * 3. Checks that the receipt's transaction is on the chain and moved exactly the price from the wallet to the seller by this authorization.
 * 4. Presents another payment to the failing call. The next checks run whatever it answers.
 * 5. Checks some blocks later that this authorization is unused, and that the wallet lost exactly the price of the first call.
 * 6. Requires the answer 500. Another answer means that the call did not reach its handler.
 * Throws SelfTestFault at the first failed check. `findings` keeps the results up to there.
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
