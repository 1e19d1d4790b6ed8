import type { ChainClient } from '../../chain/rpc/client.ts';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Channel, ChannelOperation, ChannelStore } from '../../store/ports/channels.ts';
import { createLookupSchedule } from '../settle-rows.ts';
import type {
  MinedTransaction,
  Operation,
  OperationDone,
  OperationFailed,
  OperationOutcome,
  Relayer,
} from '../settler.ts';
import { receiptOf } from '../usdc/evidence.ts';
import {
  channelEvents,
  claimedRows,
  eventTransactionHashes,
  refundNonceOf,
  settleCalldata,
  withCall,
} from './calldata.ts';
import type { ChannelReader } from './channel.ts';
import { whyRefused } from './claims.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';

// Carries out the ledger's refunds through our relayer. The calldata holds the contract's nonce, so the contract
// carries a refund out once, and one whose nonce is used is never sent again. A round, for each:
// 1. Looks at the chain, if a transaction was noted. Else reads the channel: where nothing could go back, none is sent.
// 2. Sends it, with the sweep where it claims something. What was sent in vain is sent again after longer pauses.
// 3. Notes the channel's new balance, then the end: from then on the channel takes vouchers again.

/** A row, a refund and a first sweep use 190,000 on the embedded network. Arc's USDC is dearer. Unused gas is free. */
const REFUND_GAS = 400_000n;
/** Milliseconds. The longest pause before a refund that was sent in vain is sent again: some 24 transactions a day. */
const LONGEST_PAUSE_MS = 3_600_000;
const NOTHING_LEFT: OperationFailed = { kind: 'failed', reason: 'the channel holds nothing that could go back' };

const behind = () => new UpstreamFailed('chain', 'the node is behind what is known of the channel');

interface RefundSendingOptions extends RefundEvidenceOptions {
  readonly store: RefundEvidenceOptions['store'] & Pick<ChannelStore, 'get' | 'note' | 'noteBroadcast'>;
  readonly chain: RefundEvidenceOptions['chain'] & Pick<ChainClient, 'each' | 'agreed'>;
  readonly relayer: Pick<Relayer, 'operate'>;
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
  readonly sender: `0x${string}`;
  readonly fencingToken?: number | undefined;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn' | 'error'>;
}

interface OpenRefund {
  readonly id: string;
  readonly channelId: Uint8Array;
  readonly calldata: Uint8Array;
  readonly nonce: bigint;
  transaction: Uint8Array | null;
}

function createRefundSending(options: RefundSendingOptions) {
  const { store, relayer, fencingToken, clock, log } = options;
  const evidence = createRefundEvidence(options);
  // Refunds that were sent in vain. The pauses are lost at a restart.
  const schedule = createLookupSchedule(clock, LONGEST_PAUSE_MS);

  function operationOf(refund: OpenRefund, data: Uint8Array, leastBlock: number): Operation {
    const { id, channelId } = refund;
    return {
      id,
      to: SETTLEMENT_BYTES,
      data,
      gas: REFUND_GAS,
      broadcast: refund.transaction !== null,
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

  /** Nothing is sent that would move nothing: the payer may have withdrawn. Rejects while the node is behind. */
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
    /** Null while the refund is open. The calldata of one that was sent is public, so only the chain ends it. */
    async outcomeOf(refund: OpenRefund): Promise<OperationDone | OperationFailed | null> {
      if (!schedule.isDue(refund.id)) return null;
      const found = refund.transaction ? await evidence.lookUp(refund) : null;
      if (found) return found;
      const outcome = await send(refund);
      if (outcome.kind === 'done') return outcome;
      if (outcome.kind === 'unknown') return null;
      if (refund.transaction === null) return outcome;
      const end = await evidence.lookUp(refund);
      if (end) return end;
      schedule.note(refund.id, false);
      const detail = { channel: bytesToHex(refund.channelId), reason: outcome.reason };
      log.error(detail, 'a refund that was sent did not go through; it is tried again after a pause');
      return null;
    },
    forget: (id: string): void => schedule.note(id, true),
  };
}

/** Null where the channel cannot be read. Rejects where the ledger has a newer state that differs. */
async function noteState({ store, reader, clock }: RefundSendingOptions, id: Uint8Array): Promise<Channel | null> {
  const [channel, [state]] = await Promise.all([store.get(id), reader.read([id])]);
  if (!channel || !state) return null;
  // `note` returns the newer of the two. A node that is behind may lack the newest deposit.
  const noted = await store.note(channel, state, clock.nowMs());
  if (noted.state.balance !== state.balance || noted.state.refundNonce !== state.refundNonce) throw behind();
  return noted;
}

/** Adds the sweep where something is claimed, unless the contract refuses it (a blocked receiver) or nobody says. */
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

const MOST_OPEN = 100;
/** Milliseconds between two looks for open refunds. */
const REFUNDS_MS = 1000;

interface RefundOperationsOptions extends RefundSendingOptions {
  readonly store: RefundSendingOptions['store'] & Pick<ChannelStore, 'end' | 'openOperations'>;
}

export function createRefundOperations(options: RefundOperationsOptions) {
  const { store, clock, log } = options;
  const sending = createRefundSending(options);
  // Ends that the chain has shown. Their channels could not be read at those blocks yet.
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

  /** A call during a round makes one more, and waits for it. Rejects when the chain or the ledger cannot be read. */
  function run(): Promise<void> {
    isAskedAgain = true;
    running ??= rounds();
    return running;
  }

  return {
    run,
    /** Looks for refunds again and again: another process may have stored one. Never rejects. */
    async keepRunning(stopping: AbortSignal): Promise<void> {
      while (!stopping.aborted) {
        await run().catch((err) => log.warn({ err }, 'refunds wait'));
        await clock.sleep(REFUNDS_MS, stopping).catch(() => {});
      }
    },
  };
}

/** False, and the refund stays open, while the provider shows the channel as it was before the refund. */
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

/** keccak256 of `Refunded(bytes32,address,uint128)`. */
const REFUNDED = '0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b';
const MOVED_NOTHING: OperationFailed = { kind: 'failed', reason: 'its nonce is used, and nothing went back' };

interface RefundEvidenceOptions {
  readonly store: Pick<ChannelStore, 'lastRefund'>;
  readonly reader: Pick<ChannelReader, 'read'>;
  readonly chain: Pick<ChainClient, 'batch'>;
}

interface RefundOnChain {
  readonly channelId: Uint8Array;
  /** The contract's `refundNonce`, from the calldata. */
  readonly nonce: bigint;
  /** Noted last; null when none was. */
  readonly transaction: Uint8Array | null;
}

/** How refunds ended by the chain, also those that a third party sent. */
export function createRefundEvidence(options: RefundEvidenceOptions) {
  const { store, reader, chain } = options;

  /** `moved nothing`: the transaction succeeded without the refund's event. Null: it does not decide the refund. */
  async function refundOf(channelId: Uint8Array, hash: string): Promise<OperationDone | 'moved nothing' | null> {
    const receipt = await receiptOf(chain, hash, { rank: 'settle' });
    if (!receipt) return null;
    return refundedIn(receipt, channelId) ?? (receipt.status === '0x1' ? 'moved nothing' : null);
  }

  return {
    /** What a transaction gave back from this channel; null when it shows no refund of it. */
    refundedIn,
    /**
     * The noted transaction shows the end. Else there is none until the contract's nonce is above the refund's; then it
     * is the nonce's event, or it failed for good. Rejects when the chain or the ledger cannot be read.
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
