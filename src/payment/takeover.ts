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

/** Authorizations remembered as paid, some 1 MB; past it the oldest is looked up again when it comes. */
const MAX_PAID = 10_000;

interface TakeoverOptions {
  ledger: Pick<Ledger, 'ruleOut'>;
  clock: Clock;
}

/** What the evidence says of a reverted authorization: good to be settled again, or paid by a third party since. */
export type Takeover = <S>(known: Payment, order: Order<S>, asker: Asker) => Promise<'open' | 'paid'>;

/**
 * Decides what becomes of an authorization that reverted here and is presented again. The chain has shown it to everybody, so a third party may
 * have sent it, or its payer used it elsewhere. The evidence is asked before anything else:
 * 1. unused: it may be sold for again, as a new one; 2. it paid us: its buyer is owed an answer, even when its time is over;
 * 3. used elsewhere or run out: the row ends with that, throws PaymentRefused, and is never looked up again;
 * 4. not to be told now: throws 503 `settlement_unknown`. A lookup costs several requests, so there is one a second for an authorization.
 */
export function createTakeover({ ledger, clock }: TakeoverOptions): Takeover {
  const looks = createLooks(clock);
  const paid = new Map<string, true>();

  return async (known, { authorization, authorizationHash, rail }, asker) => {
    const id = bytesToHex(authorizationHash);
    if (paid.has(id)) return 'paid';
    const mayLookUp = (): boolean => {
      const isDue = looks.isDueForBuyer(id);
      if (isDue) looks.note(id, false);
      return isDue;
    };
    const verdict = await rail.review(authorization, known, { asker, mayLookUp });
    if (verdict.kind === 'open') return 'open';
    if (verdict.kind === 'unknown') throw settlementUnknown();
    looks.note(id, true);
    if (verdict.kind === 'failed') {
      await ledger.ruleOut(known.id, verdict.reason);
      throw refusedSettlement({ ...known, reason: verdict.reason });
    }
    setNewest(paid, id, true, MAX_PAID);
    return 'paid';
  };
}
