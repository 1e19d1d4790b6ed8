import { TooMany } from '../../errors.ts';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import type { PaymentKey } from '../../store/ports/sales.ts';
import { paymentKey } from '../authorization.ts';
import { settlementUnknown } from '../doubt.ts';
import type { PurchaseRail } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import type { ChainCheck } from './chain-check.ts';
import { createEmptyPayers } from './empty-payers.ts';
import type { Evidence } from './evidence.ts';
import { checkCodeTaken } from './signature.ts';

interface AuthorizationChecksOptions {
  /** Sums a payer's open payments under these contracts that were reserved before this one. */
  ledger: { openBefore(key: PaymentKey, id: string, contracts: readonly Uint8Array[]): Promise<bigint> };
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  status: PurchaseRail['status'];
  network: string;
  /** The contract in the ledger's key of the rail's payments. */
  contract: Uint8Array;
  /** The contracts of all payments that share the payer's balance, this rail's included. */
  balanceContracts: readonly Uint8Array[];
  /** The rail's own codes. `simulation` is by default the exact scheme's. */
  reasons: { readonly insufficient: string; readonly used: string; readonly simulation?: string };
  clock: Clock;
}

/** The checks of an authorization of the token itself, whichever call settles it. The chain decides about it. */
export function createAuthorizationChecks(
  options: AuthorizationChecksOptions,
): Pick<PurchaseRail, 'review' | 'look' | 'verify'> {
  const { ledger, check, evidence, status, network, contract, balanceContracts, reasons, clock } = options;
  const empty = createEmptyPayers(clock);

  return {
    /**
     * Open when the shared read shows it as unused and it has not expired. Otherwise the logs decide. They are read with rank `collect`: this payer is
     * not verified now, so it must not use what is kept for verified buyers (R1).
     */
    review: async ({ authorization }, { checkedBlock }, { asker, mayLookUp }) => {
      const { used, block } = await check.admit(authorization, asker, true);
      if (!used && BigInt(nowSeconds(clock)) < authorization.validBefore) return { kind: 'open' };
      if (!mayLookUp()) return { kind: 'unknown' };
      return evidence.lookup(authorization, checkedBlock ?? block, { rank: 'collect' });
    },
    /** Refuses a used authorization, and a balance below its amount. */
    look: async ({ authorization }, asker, { signed, isAgain }) => {
      const payer = bytesToHex(authorization.from);
      const waitSeconds = empty.secondsBelow(payer, authorization.value);
      if (waitSeconds > 0) throw shortOfFunds(waitSeconds);
      const seen = signed ?? (await check.admit(authorization, asker, true));
      // A third party has sent it since the review. The next review will show whom it paid.
      if (seen.used && isAgain) throw settlementUnknown();
      if (seen.used) throw new PaymentRefused(reasons.used);
      empty.note(payer, seen.balance);
      if (seen.balance < authorization.value) throw new PaymentRefused(reasons.insufficient);
      return seen;
    },
    /**
     * 1. The balance must also cover the payer's earlier open payments, on every rail that takes from it.
     * 2. A payment of an account with code must pass a simulation.
     */
    verify: async (id, { authorization, call = null }, { balance, hasCode, block }, { asker }) => {
      const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id, balanceContracts);
      if (balance < authorization.value + promised) throw new PaymentRefused(reasons.insufficient);
      if (hasCode) {
        checkCodeTaken(status);
        await check.simulate({ authorization, call }, asker.signal).catch((error) => {
          const isRenamed = error instanceof PaymentRefused && reasons.simulation !== undefined;
          throw isRenamed ? new PaymentRefused(reasons.simulation) : error;
        });
      }
      return { checkedBlock: block, hasCode };
    },
  };
}

/** A refusal from memory. The payer may have received money since, so the error does not say that it lacks any. */
function shortOfFunds(waitSeconds: number): TooMany {
  const detail = 'the balance of this payer was too low a moment ago; present the payment again';
  return new TooMany('payer_short_of_funds', detail, waitSeconds);
}
