import type { Ledger } from '../../../src/payment/ledger.ts';
import { PaymentRefused } from '../../../src/payment/refusal.ts';
import {
  EXPIRED,
  type Found,
  NONCE_USED,
  REVERTED,
  type Relayer,
  type SettlerStatus,
} from '../../../src/payment/settler.ts';
import type { ChainCheck } from '../../../src/payment/usdc/checks.ts';
import type { Evidence } from '../../../src/payment/usdc/evidence.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import type { openChannelLedger } from './channel-ledger.ts';

// The world around the rail of channels as a test describes it: the payer of a deposit, the settler and the relayer.

type Bed = Awaited<ReturnType<typeof openChannelLedger>>;
export type Script = ReturnType<typeof createScript>;

const HASH = Buffer.alloc(32, 0xda);
const REASONS = { reverted: REVERTED, 'used elsewhere': NONCE_USED, expired: EXPIRED, 'another reason': 'lost' };

/** Tests change it as they go. */
export function createScript() {
  return {
    /** Why nothing is settled, nothing is sent, no sale begins, this payer and accounts with code are refused. */
    unavailable: null as string | null,
    cannotSend: null as string | null,
    stopsSales: null as string | null,
    refusesPayer: null as string | null,
    refusesCode: null as string | null,
    /** What the chain says of the payer of a deposit, and whether its contract says that it signed. */
    wallet: { used: false, balance: 1_000_000n, hasCode: false },
    isSignedByContract: true,
    wouldDepositFail: false,
    /** What was asked of the payer of a deposit. */
    asked: [] as string[],
    /** The contracts that were to be called to settle a deposit. */
    settledBy: [] as string[],
    /** The calldata of those calls. */
    settledWith: [] as (Uint8Array | undefined)[],
    settlement: 'paid' as 'paid' | 'reverted' | 'used elsewhere' | 'expired' | 'another reason' | 'unknown',
    /** What the logs say of a deposit's authorization. */
    evidence: 'open' as 'open' | 'paid' | 'used elsewhere' | 'unknown',
    refund: 'paid' as 'paid' | 'failed' | 'open',
  };
}

export const statusOf = (script: Script): SettlerStatus => ({
  unavailable: () => script.unavailable,
  cannotSend: () => script.cannotSend,
  refuses: () => script.refusesPayer,
  refusesCode: () => script.refusesCode,
  stopsSales: () => script.stopsSales,
});

export function checkOf(script: Script, bed: Bed): ChainCheck {
  const read = async () => {
    script.asked.push('payer');
    return { ...script.wallet, block: bed.contract.block };
  };
  return {
    read,
    admit: read,
    balanceAt: async () => script.wallet.balance,
    contractSigned: async () => script.isSignedByContract,
    simulate: async () => {
      script.asked.push('simulation');
      if (script.wouldDepositFail) throw new PaymentRefused('invalid_exact_evm_transaction_simulation_failed');
    },
  };
}

export function evidenceOf(script: Script): Evidence {
  const found = (paid: bigint): Found => {
    if (script.evidence === 'paid') return { kind: 'settled', transaction: HASH, block: 1001, paid };
    return script.evidence === 'used elsewhere' ? { kind: 'failed', reason: NONCE_USED } : { kind: script.evidence };
  };
  return { lookup: async ({ value }) => found(value), paidIn: async () => null };
}

/** Settles a deposit's row as the script says. Money that is paid is in the channel. */
export function settlementOf(script: Script, bed: Bed, ledger: Ledger) {
  return async (id: string): Promise<Payment | null> => {
    const row = await ledger.get(id);
    const { settlement } = script;
    if (!row?.channel) return row;
    if (settlement === 'unknown') await ledger.unknown(id);
    else if (settlement === 'paid') {
      const { balance } = bed.contract.of(row.channel.channelId);
      bed.contract.block += 1;
      // What a third party has sent is in the channel already.
      if (script.evidence !== 'paid') bed.contract.put(row.channel.channelId, { balance: balance + row.amount });
      await ledger.settled(id, HASH, bed.contract.block, row.amount);
    } else {
      await ledger.noteBroadcast([{ id, transaction: HASH }]);
      await ledger.failed(id, REASONS[settlement]);
    }
    return ledger.get(id);
  };
}

/** Carries refunds out at the contract's stand-in, unless the script says otherwise. */
export function relayerOf(script: Script, bed: Bed): Relayer {
  const nothing = () => null;
  return {
    settle: () => [],
    unavailable: nothing,
    cannotSend: nothing,
    refuses: nothing,
    refused: () => [],
    refusesCode: nothing,
    operate: async (operation) => {
      if (script.refund === 'paid') return bed.contract.operate(operation);
      // A refund that fails may have been sent.
      if (script.refund === 'failed' && (await operation.note(HASH)))
        await bed.store.end(operation.id, { state: 'failed', reason: 'reverted', endedAt: bed.clock.nowMs() });
      return { kind: 'unknown' };
    },
  };
}
