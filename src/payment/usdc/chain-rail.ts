import { hexToBytes } from '../../lib/hex.ts';
import type { Ledger } from '../ledger.ts';
import { PaymentRefused } from '../refusal.ts';
import { checkAuthorization, paymentKey } from './authorization.ts';
import type { ChainCheck } from './chain-check.ts';
import type { Evidence } from './evidence.ts';
import type { PurchaseRail } from './purchase-rail.ts';

interface ChainRailOptions {
  ledger: Pick<Ledger, 'openBefore'>;
  check: Pick<ChainCheck, 'read' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  settler: PurchaseRail['settler'];
  checkSignature: PurchaseRail['checkSignature'];
  network: string;
  usdc: `0x${string}`;
}

/** The plain rail: an authorization of the token itself, judged by the chain whoever settles it. */
export function createChainRail(options: ChainRailOptions): PurchaseRail {
  const { ledger, check, evidence, settler, checkSignature, network } = options;
  const contract = hexToBytes(options.usdc);

  return {
    contract,
    settler,
    requirement: (plain) => plain,
    checkAuthorization,
    checkSignature,
    verify: async (id, authorization, known, signal) => {
      const reading = await check.read(authorization, signal);
      const since = known?.checkedBlock ?? reading.block;
      if (reading.used) {
        // Somebody may have sent what our reverted transaction showed the world: then its buyer has paid and is owed the answer.
        const verdict = known ? await evidence.lookup(authorization, since) : null;
        if (verdict?.kind === 'settled') return since;
        throw new PaymentRefused('invalid_exact_evm_nonce_already_used');
      }
      const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id);
      if (reading.balance < authorization.value + promised) {
        throw new PaymentRefused('invalid_exact_evm_insufficient_balance');
      }
      if (reading.hasCode) await check.simulate(authorization, signal);
      return since;
    },
  };
}
