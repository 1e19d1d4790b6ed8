import type { ChannelOperation, ChannelStore } from '../../../store/ports/channels.ts';
import type { OperationDone, OperationFailed } from '../../operation.ts';
import { refundNonceOf } from './calldata.ts';
import { createRefundSending, type OpenRefund, type RefundSendingOptions } from './refund-sending.ts';

/** Refunds that one round carries out. */
const MOST_OPEN = 100;

export interface RefundOperationsOptions extends RefundSendingOptions {
  readonly store: RefundSendingOptions['store'] & Pick<ChannelStore, 'end' | 'openOperations'>;
}

/**
 * Carries out the refunds that stand in the ledger, through our relayer. The calldata holds the contract's nonce of the refund, so the contract
 * carries it out once. Each round looks first at what the chain shows. A refund whose nonce is used is never sent again.
 */
export function createRefundOperations(options: RefundOperationsOptions) {
  const { store } = options;
  const sending = createRefundSending(options);
  // Ends that the chain has shown, whose channel could not be read at their block yet.
  const shown = new Map<string, OperationDone | OperationFailed>();
  let running: Promise<void> | null = null;
  let isAskedAgain: boolean;

  async function carryOut({ id, transaction, calldata, channelId }: ChannelOperation): Promise<void> {
    const nonce = calldata && refundNonceOf(calldata);
    if (!calldata || !channelId || nonce === null) return;
    const refund = { id, transaction, calldata, channelId, nonce };
    const outcome = shown.get(id) ?? (await sending.outcomeOf(refund));
    if (!outcome) return;
    shown.set(id, outcome);
    if (!(await end(options, refund, outcome))) return;
    shown.delete(id);
    sending.forget(id);
  }

  async function round(): Promise<void> {
    const open = (await store.openOperations(MOST_OPEN)).filter(({ kind }) => kind === 'refund');
    const ended = await Promise.allSettled(open.map(carryOut));
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async function rounds(): Promise<void> {
    try {
      do {
        isAskedAgain = false;
        await round();
      } while (isAskedAgain);
    } finally {
      running = null;
    }
  }

  return {
    /**
     * Carries out what is open. A call during a round makes one more round, and waits for it. Rejects when the chain or the ledger cannot be read.
     */
    run(): Promise<void> {
      isAskedAgain = true;
      running ??= rounds();
      return running;
    },
  };
}

/**
 * Notes the channel's new balance and then the end, because the channel takes vouchers again from then on. False, and the refund stays open, while
 * the provider shows the channel as it was before the refund.
 */
async function end(
  { store, reader, clock }: RefundOperationsOptions,
  { id, channelId, nonce, transaction }: OpenRefund,
  outcome: OperationDone | OperationFailed,
): Promise<boolean> {
  const [channel, [state]] = await Promise.all([store.get(channelId), reader.read([channelId])]);
  if (!channel || !state) return false;
  const mayBePublic = outcome.kind === 'done' || transaction !== null;
  if (mayBePublic && state.refundNonce <= nonce) return false;
  if (outcome.kind === 'done' && state.block < outcome.block) return false;
  await store.note(channel, state, clock.nowMs());
  const endedAt = clock.nowMs();
  if (outcome.kind === 'failed') await store.end(id, { state: 'failed', reason: outcome.reason, endedAt });
  else {
    const { amount, transaction: hash } = outcome;
    await store.end(id, { state: 'done', amount, transaction: hash, endedAt });
  }
  return true;
}
