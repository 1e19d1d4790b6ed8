import type { ChainClient } from '../../../chain/rpc/client.ts';
import { UpstreamFailed } from '../../../errors.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { MinedTransaction, OperationDone, OperationFailed } from '../../operation.ts';
import { receiptOf } from '../../usdc/evidence.ts';
import { channelEvents } from './channel-events.ts';
import type { ChannelReader } from './channel-reader.ts';
import { eventTransactionHashes } from './event-logs.ts';

/** keccak256 of `Refunded(bytes32,address,uint128)`. */
const REFUNDED = '0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b';
/** The end of a refund whose nonce is used and that gave nothing back. */
const MOVED_NOTHING: OperationFailed = { kind: 'failed', reason: 'its nonce is used, and nothing went back' };

export interface RefundEvidenceOptions {
  readonly store: Pick<ChannelStore, 'lastRefund'>;
  readonly reader: Pick<ChannelReader, 'read'>;
  readonly chain: Pick<ChainClient, 'batch'>;
}

/** A refund as the chain knows it. */
export interface RefundOnChain {
  readonly channelId: Uint8Array;
  /** The contract's `refundNonce` that its calldata holds. */
  readonly nonce: bigint;
  /** The transaction that was noted last; null when none was. */
  readonly transaction: Uint8Array | null;
}

/** Reads from the chain how refunds ended, also those that a third party sent. */
export function createRefundEvidence(options: RefundEvidenceOptions) {
  const { store, reader, chain } = options;

  /** The refund in a mined transaction. `moved nothing`: the transaction succeeded without the refund's event. Null: it does not decide the refund. */
  async function refundOf(channelId: Uint8Array, hash: string): Promise<OperationDone | 'moved nothing' | null> {
    const receipt = await receiptOf(chain, hash, { rank: 'settle' });
    if (!receipt) return null;
    return refundedIn(receipt, channelId) ?? (receipt.status === '0x1' ? 'moved nothing' : null);
  }

  return {
    /** What a transaction gave back from this channel; null when it shows no refund of it. */
    refundedIn,
    /**
     * 1. The noted transaction shows the end.
     * 2. The contract's nonce is not above the refund's: no end.
     * 3. The nonce is used: the refund is the event that belongs to the nonce. Only events after the channel's last refund in the ledger count. Where
     *    there is none, the refund has failed, and no transaction can carry it out any more.
     * Rejects when the chain or the ledger cannot be read.
     */
    async lookUp({ channelId, nonce, transaction }: RefundOnChain): Promise<OperationDone | OperationFailed | null> {
      const own = transaction && (await refundOf(channelId, bytesToHex(transaction)));
      if (own) return own === 'moved nothing' ? MOVED_NOTHING : own;
      const [state] = await reader.read([channelId]);
      if (!state || state.refundNonce <= nonce) return null;
      const hashes = await eventTransactionHashes(chain, [REFUNDED, bytesToHex(channelId)], state.block);
      const last = (await store.lastRefund(channelId))?.transaction;
      const later = hashes.slice(1 + (last ? hashes.lastIndexOf(bytesToHex(last)) : -1));
      // Refunds with later nonces have at most one event each.
      const hash = later.at(Number(nonce - state.refundNonce));
      if (!hash) return MOVED_NOTHING;
      const found = await refundOf(channelId, hash);
      if (found === null || found === 'moved nothing')
        throw new UpstreamFailed('chain', 'the transaction of a refund cannot be read');
      return found;
    },
  };
}

function refundedIn(receipt: MinedTransaction, channelId: Uint8Array): OperationDone | null {
  const id = bytesToHex(channelId);
  for (const event of channelEvents(receipt)) {
    if (event.kind !== 'Refunded' || bytesToHex(event.channelId) !== id) continue;
    const transaction = hexToBytes(receipt.transactionHash);
    return { kind: 'done', transaction, block: Number(receipt.blockNumber), amount: event.amount };
  }
  return null;
}
