import type { Clock } from '../lib/clock.ts';
import { bytesToHex } from '../lib/hex.ts';
import { setNewest } from '../lib/set-newest.ts';
import type { Payment } from '../store/ports/sales.ts';
import { settlementUnknown } from './doubt.ts';
import type { Ledger } from './ledger.ts';
import { createLooks } from './looks.ts';
import type { Order } from './order.ts';
import type { Asker } from './rail.ts';
import { refusedSettlement } from './receipt.ts';

/** Authorizations remembered as paid, about 1 MB. Beyond that the oldest is forgotten and looked up again when it is presented. */
const MAX_PAID = 10_000;

interface ReuseOptions {
  ledger: Pick<Ledger, 'ruleOut'>;
  clock: Clock;
}

/** What the evidence says about a reverted authorization: `open`, it can be settled again; `paid`, a third party has sent it since. */
export type Reuse = <S>(known: Payment, order: Order<S>, asker: Asker) => Promise<'open' | 'paid'>;

/**
 * Decides what a reverted authorization may do when it is presented again. It may be public, so a third party may have sent it, or its payer may have
 * used it elsewhere. The evidence is read first:
 * 1. Unused: it may buy again, as a new one.
 * 2. It paid us: its buyer is owed an answer, even after it has expired.
 * 3. Used elsewhere or expired: the row gets that reason, PaymentRefused is thrown, and it is never looked up again.
 * 4. Not known now: 503 `settlement_unknown`. A lookup costs several requests, so there is one per second for each authorization.
 */
export function createReuse({ ledger, clock }: ReuseOptions): Reuse {
  const looks = createLooks(clock);
  const paid = new Map<string, true>();

  return async (known, { payment, authorizationHash, rail }, asker) => {
    const id = bytesToHex(authorizationHash);
    if (paid.has(id)) return 'paid';
    const mayLookUp = (): boolean => {
      const isDue = looks.isDueForBuyer(id);
      if (isDue) looks.note(id, false);
      return isDue;
    };
    const verdict = await rail.review(payment, known, { asker, mayLookUp });
    if (verdict.kind === 'open') return 'open';
    if (verdict.kind === 'unknown') throw settlementUnknown();
    looks.note(id, true);
    if (verdict.kind === 'failed') {
      await ledger.ruleOut(known.id, verdict.reason);
      throw refusedSettlement({ ...known, reason: verdict.reason }, rail);
    }
    setNewest(paid, id, true, MAX_PAID);
    return 'paid';
  };
}
