import type { Clock } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { settlementUnknown } from '../doubt.ts';
import type { Ledger } from '../ledger.ts';
import { PaymentRefused } from '../refusal.ts';
import { type Authorization, checkAuthorization, paymentKey, type ValidityBounds } from './authorization.ts';
import type { ChainCheck } from './chain-check.ts';
import { createEmptyPayers } from './empty-payers.ts';
import type { Evidence } from './evidence.ts';
import type { PurchaseRail } from './purchase-rail.ts';
import { NONCE_USED } from './settler.ts';
import { checkCodeTaken } from './signature.ts';

interface ChainRailOptions {
  ledger: Pick<Ledger, 'openBefore'>;
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  settler: PurchaseRail['settler'];
  checkSignature: PurchaseRail['checkSignature'];
  validity: ValidityBounds;
  network: string;
  usdc: `0x${string}`;
  clock: Clock;
}

/** The plain rail: an authorization of the token itself, judged by the chain, also where a facilitator settles it. */
export function createChainRail(options: ChainRailOptions): PurchaseRail {
  const { ledger, check, evidence, settler, checkSignature, validity, network } = options;
  const contract = hexToBytes(options.usdc);
  const empty = createEmptyPayers(options.clock);

  /** A third party may have sent what our reverted transaction showed the world: then its buyer has paid and is owed the answer. */
  async function checkPaid(authorization: Authorization, since: number): Promise<void> {
    const { kind } = await evidence.lookup(authorization, since);
    if (kind === 'settled') return;
    if (kind === 'failed') throw new PaymentRefused(NONCE_USED);
    // Providers of different height may contradict each other: then nothing is known.
    throw settlementUnknown();
  }

  return {
    contract,
    settler,
    requirement: (plain) => plain,
    checkAuthorization: (authorization, requirement, now) =>
      checkAuthorization(authorization, requirement, now, validity),
    checkSignature,
    /** What is used ends here, unless a third party may have sent what reverted before; so does a balance below the price. */
    look: async (authorization, known, asker, signed) => {
      const payer = bytesToHex(authorization.from);
      if (!known && empty.isBelow(payer, authorization.value)) throw new PaymentRefused(INSUFFICIENT);
      const seen = signed ?? (await check.admit(authorization, asker, true));
      if (known && seen.used) return seen;
      if (seen.used) throw new PaymentRefused(NONCE_USED);
      empty.note(payer, seen.balance);
      if (seen.balance < authorization.value) throw new PaymentRefused(INSUFFICIENT);
      return seen;
    },
    /** 1. What is used was paid; 2. the balance covers what the payer promised before, too; 3. an account with code lets it through. */
    verify: async (id, authorization, known, { used, balance, hasCode, block }, asker) => {
      const checkedBlock = known?.checkedBlock ?? block;
      if (used) {
        await checkPaid(authorization, checkedBlock);
        return { checkedBlock, hasCode };
      }
      const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id);
      if (balance < authorization.value + promised) throw new PaymentRefused(INSUFFICIENT);
      if (hasCode) {
        checkCodeTaken(settler);
        await check.simulate(authorization, asker.signal);
      }
      return { checkedBlock, hasCode };
    },
  };
}

const INSUFFICIENT = 'invalid_exact_evm_insufficient_balance';
