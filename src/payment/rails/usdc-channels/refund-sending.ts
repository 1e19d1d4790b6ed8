import type { ChainClient } from '../../../chain/rpc/client.ts';
import { UpstreamFailed } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import { createLooks } from '../../looks.ts';
import type { Operation, OperationDone, OperationFailed, OperationOutcome } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import { claimedRows, settleCalldata, withCall } from './calldata.ts';
import { whyRefused } from './claim-batch.ts';
import { createRefundEvidence, type RefundEvidenceOptions } from './refund-evidence.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';

/**
 * A claim of one row, a refund and the first sweep to a receiver use 190,000 gas on the embedded network. Arc's own USDC makes the transfers dearer. Only
 * used gas is paid for.
 */
const REFUND_GAS = 400_000n;
/** The longest pause before a refund that was sent in vain is sent again, in milliseconds: some 24 transactions a day. */
const LONGEST_PAUSE_MS = 3_600_000;
const NOTHING_LEFT: OperationFailed = { kind: 'failed', reason: 'the channel holds nothing that could go back' };

const behind = () => new UpstreamFailed('chain', 'the node is behind what is known of the channel');

export interface RefundSendingOptions extends RefundEvidenceOptions {
  readonly store: RefundEvidenceOptions['store'] & Pick<ChannelStore, 'get' | 'note' | 'noteBroadcast'>;
  readonly chain: RefundEvidenceOptions['chain'] & Pick<ChainClient, 'each' | 'agreed'>;
  readonly relayer: Pick<Relaying, 'operate'>;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
  /** The relayer's address, which simulations use as the sender. */
  readonly sender: `0x${string}`;
  /** The fencing token of this process's lease; undefined where only one process can settle. */
  readonly fencingToken?: number | undefined;
  readonly clock: Clock;
  readonly log: { error(detail: object, message: string): void };
}

/** An open refund: its row, with what every step needs. */
export interface OpenRefund {
  readonly id: string;
  readonly channelId: Uint8Array;
  readonly calldata: Uint8Array;
  readonly nonce: bigint;
  /** The transaction that was noted last. */
  transaction: Uint8Array | null;
}

/** Sends refunds through our relayer, and says how they ended. A refund whose nonce is used is never sent again. */
export function createRefundSending(options: RefundSendingOptions) {
  const { store, relayer, fencingToken, clock, log } = options;
  const evidence = createRefundEvidence(options);
  // The refunds that were sent in vain. The pauses are in memory and lost at a restart.
  const looks = createLooks(clock, LONGEST_PAUSE_MS);

  function operationOf(refund: OpenRefund, data: Uint8Array, leastBlock: number): Operation {
    const { id, channelId } = refund;
    return {
      ...{ id, to: SETTLEMENT_BYTES, data, gas: REFUND_GAS, broadcast: refund.transaction !== null },
      leastBlock,
      readReceipt: (receipt) => evidence.refundedIn(receipt, channelId),
      lookUp: () => evidence.lookUp(refund),
      note: async (transaction) => {
        const isOpen = (await store.noteBroadcast([{ id, transaction }], fencingToken)).has(id);
        if (isOpen) refund.transaction = transaction;
        return isOpen;
      },
    };
  }

  /**
   * A refund without a transaction is not sent where it would move nothing: the payer may have withdrawn meanwhile. Notes the channel's state first.
   * Rejects, and the refund stays open, while the node is behind the noted state.
   */
  async function send(refund: OpenRefund): Promise<OperationOutcome> {
    let leastBlock = 0;
    if (refund.transaction === null) {
      const noted = await noteState(options, refund.channelId);
      if (noted && noted.state.balance <= noted.charged) return NOTHING_LEFT;
      // A node that is behind would refuse the nonce or the amount, and the refund would end as failed.
      leastBlock = noted?.state.block ?? 0;
    }
    const data = await withSweep(options, refund.calldata, leastBlock);
    return relayer.operate(operationOf(refund, data, leastBlock));
  }

  return {
    /** How the refund ended; null while that is open. The calldata of a refund that was sent is public. So only the chain ends it. */
    async outcomeOf(refund: OpenRefund): Promise<OperationDone | OperationFailed | null> {
      if (!looks.isDue(refund.id)) return null;
      const found = refund.transaction ? await evidence.lookUp(refund) : null;
      if (found) return found;
      const outcome = await send(refund);
      if (outcome.kind === 'done') return outcome;
      if (outcome.kind === 'unknown') return null;
      if (refund.transaction === null) return outcome;
      const end = await evidence.lookUp(refund);
      if (end) return end;
      looks.note(refund.id, false);
      const detail = { channel: bytesToHex(refund.channelId), reason: outcome.reason };
      log.error(detail, 'a refund that was sent did not go through; it is tried again after a pause');
      return null;
    },
    /** Forgets the pauses of a refund that has ended. */
    forget: (id: string): void => looks.note(id, true),
  };
}

/** Notes the channel's state. Null where it cannot be read. Rejects where the ledger has a newer one that differs. */
async function noteState({ store, reader, clock }: RefundSendingOptions, id: Uint8Array): Promise<Channel | null> {
  const [channel, [state]] = await Promise.all([store.get(id), reader.read([id])]);
  if (!channel || !state) return null;
  // `note` returns the newer of the two states. A node that is behind may lack the newest deposit.
  const noted = await store.note(channel, state, clock.nowMs());
  if (noted.state.balance !== state.balance || noted.state.refundNonce !== state.refundNonce) throw behind();
  return noted;
}

/**
 * The refund's calldata, with the sweep to the receiver where it claims something: otherwise that money waits in the contract for the next claim. Without
 * the sweep where the contract refuses it or no node simulates it, because the receiver may be blocked.
 */
async function withSweep(
  { chain, sender, receiver, token }: RefundSendingOptions,
  calldata: Uint8Array,
  leastBlock: number,
): Promise<Uint8Array> {
  if (claimedRows(calldata).length === 0) return calldata;
  const swept = withCall(calldata, settleCalldata(receiver, token));
  try {
    const block = Math.max(leastBlock, await chain.agreed.head({ rank: 'settle' }));
    return (await whyRefused({ chain, sender }, { calldata: swept, gas: REFUND_GAS, block })) === null
      ? swept
      : calldata;
  } catch {
    return calldata;
  }
}
