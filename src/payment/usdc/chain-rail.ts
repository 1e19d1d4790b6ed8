import type { Clock } from '../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Payment } from '../../store/ledger-port.ts';
import { settlementUnknown } from '../doubt.ts';
import type { Ledger } from '../ledger.ts';
import { PaymentRefused } from '../refusal.ts';
import { type Authorization, checkAuthorization, paymentKey, type ValidityBounds } from './authorization.ts';
import type { ChainCheck } from './chain-check.ts';
import { createEmptyPayers } from './empty-payers.ts';
import type { Evidence } from './evidence.ts';
import type { PurchaseRail } from './purchase-rail.ts';
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
  async function checkPaid(authorization: Authorization, known: Payment | null, since: number): Promise<void> {
    const verdict = known ? await evidence.lookup(authorization, since) : null;
    if (verdict?.kind === 'settled') return;
    // Providers of different height may contradict each other: then nothing is known.
    if (verdict && verdict.kind !== 'failed') throw settlementUnknown();
    throw new PaymentRefused('invalid_exact_evm_nonce_already_used');
  }

  return {
    contract,
    settler,
    requirement: (plain) => plain,
    checkAuthorization: (authorization, requirement, now) =>
      checkAuthorization(authorization, requirement, now, validity),
    checkSignature,
    /** 1. The authorization is unused; 2. the balance covers the price and what the payer promised before; 3. an account with code lets it through. */
    verify: async (id, authorization, known, asker) => {
      const payer = bytesToHex(authorization.from);
      if (!known && empty.isBelow(payer, authorization.value)) throw new PaymentRefused(INSUFFICIENT);
      const { hasCode, ...reading } = await check.admit(authorization, asker);
      const checkedBlock = known?.checkedBlock ?? reading.block;
      if (reading.used) {
        await checkPaid(authorization, known, checkedBlock);
        return { checkedBlock, hasCode };
      }
      empty.note(payer, reading.balance);
      const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id);
      if (reading.balance < authorization.value + promised) throw new PaymentRefused(INSUFFICIENT);
      if (hasCode) {
        checkCodeTaken(settler);
        await check.simulate(authorization, asker.signal);
      }
      return { checkedBlock, hasCode };
    },
  };
}

const INSUFFICIENT = 'invalid_exact_evm_insufficient_balance';
