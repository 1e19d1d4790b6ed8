import type { ChainClient } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { ChannelOperation, ChannelStore, OperationEnd } from '../../../store/ports/channels.ts';
import { readReceipt } from '../../evm/evidence.ts';
import type { MinedTransaction, Operation, OperationDone } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import type { ChannelReader } from './channel-reader.ts';
import { channelEvents } from './operations-evidence.ts';
import { SETTLEMENT, SETTLEMENT_BYTES } from './scheme.ts';

/** A claim of one row and a refund use 126,000 gas on the embedded network. Arc's own USDC makes the transfer dearer. Only used gas is paid for. */
const REFUND_GAS = 300_000n;
/** keccak256 of `Refunded(bytes32,address,uint128)`. */
const REFUNDED = '0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b';
/** Public nodes refuse `eth_getLogs` over 10,000 blocks and more. On Arc these are 83 minutes. */
const LOG_SPAN = 9_999;
/** Refunds that one round carries out. */
const MOST_OPEN = 100;

export interface RefundOperationsOptions {
  readonly store: Pick<ChannelStore, 'get' | 'note' | 'noteBroadcast' | 'end' | 'openOperations' | 'operation'>;
  readonly relayer: Pick<Relaying, 'operate'>;
  readonly reader: ChannelReader;
  readonly chain: Pick<ChainClient, 'request'>;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
  /** The fencing token of this process's lease; undefined where only one process can settle. */
  readonly fencingToken?: number | undefined;
  readonly clock: Clock;
  readonly log: { error(detail: object, message: string): void };
}

/**
 * Carries out the refunds that stand in the ledger, through our relayer. The calldata holds the contract's nonce of the refund, so the contract
 * carries it out once. Each round looks first at what the chain shows.
 */
export function createRefundOperations(options: RefundOperationsOptions) {
  const { store, relayer, fencingToken, clock, log } = options;
  let running: Promise<void> | null = null;
  let isAskedAgain = false;

  async function carryOut({ id, transaction, calldata, channelId }: ChannelOperation): Promise<void> {
    if (!calldata || !channelId) return;
    const shown = transaction ? await lookUp(options, channelId, transaction) : null;
    const operation: Operation = {
      ...{ id, to: SETTLEMENT_BYTES, data: calldata, gas: REFUND_GAS, broadcast: transaction !== null },
      readReceipt: (receipt) => refundedIn(receipt, channelId, options),
      lookUp: () => lookUp(options, channelId, transaction),
      note: async (noted) => (await store.noteBroadcast([{ id, transaction: noted }], fencingToken)).has(id),
    };
    const outcome = shown ?? (await relayer.operate(operation));
    const endedAt = clock.nowMs();
    if (outcome.kind === 'done') {
      const { amount, transaction: hash } = outcome;
      await end(options, channelId, id, { state: 'done', amount, transaction: hash, endedAt });
    } else if (outcome.kind === 'failed') await endFailed(id, channelId, outcome.reason);
  }

  /**
   * A refund that was never sent has failed. Its calldata is public once it was sent, and a third party may send it too. So the channel stays closed
   * until the chain shows its end.
   */
  async function endFailed(id: string, channelId: Uint8Array, reason: string): Promise<void> {
    const row = await store.operation(id);
    if (row?.transaction)
      return log.error(
        { channel: bytesToHex(channelId), reason },
        'a refund that was sent did not go through; it is tried again',
      );
    await end(options, channelId, id, { state: 'failed', reason, endedAt: clock.nowMs() });
  }

  async function round(): Promise<void> {
    const open = (await store.openOperations(MOST_OPEN)).filter(({ kind }) => kind === 'refund');
    const ended = await Promise.allSettled(open.map(carryOut));
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }

  return {
    /** Carries out what is open. A call during a round makes one more round. Rejects when the chain or the ledger cannot be read. */
    run: async (): Promise<void> => {
      isAskedAgain = running !== null;
      if (running) return running;
      running = round();
      try {
        await running;
        if (!isAskedAgain) return;
        isAskedAgain = false;
        await round();
      } finally {
        running = null;
      }
    },
  };
}

/** Notes the channel's new balance and then the end, because the channel takes vouchers again from then on. */
async function end(
  { store, reader, clock }: RefundOperationsOptions,
  channelId: Uint8Array,
  id: string,
  ended: OperationEnd,
): Promise<void> {
  const channel = await store.get(channelId);
  const [state] = await reader.read([channelId]);
  if (channel && state) await store.note(channel, state, clock.nowMs());
  await store.end(id, ended);
}

/** What a transaction gave back from this channel; null when it shows no refund of it. */
function refundedIn(
  receipt: MinedTransaction,
  channelId: Uint8Array,
  ours: Pick<RefundOperationsOptions, 'receiver' | 'token'>,
): OperationDone | null {
  const id = bytesToHex(channelId);
  for (const event of channelEvents(receipt, ours)) {
    if (event.kind !== 'Refunded' || bytesToHex(event.channelId) !== id) continue;
    const transaction = Buffer.from(receipt.transactionHash.slice(2), 'hex');
    return { kind: 'done', transaction, block: Number(receipt.blockNumber), amount: event.amount };
  }
  return null;
}

/**
 * Looks for the refund in its noted transaction, and then in the newest logs of the channel. There is one refund of a channel at a time, and at least
 * ten minutes lie between two.
 */
async function lookUp(
  options: RefundOperationsOptions,
  channelId: Uint8Array,
  noted: Uint8Array | null,
): Promise<OperationDone | null> {
  const hash = noted && bytesToHex(noted);
  const own = hash && (await refundOf(options, channelId, hash));
  if (own) return own;
  if (!noted) return null;
  const [state] = await options.reader.read([channelId]);
  const head = state?.block ?? 0;
  const range = { fromBlock: toQuantity(Math.max(0, head - LOG_SPAN + 1)), toBlock: toQuantity(head) };
  const filter = { address: SETTLEMENT, topics: [REFUNDED, bytesToHex(channelId)], ...range };
  const logs = await options.chain.request<{ transactionHash: string; data: string }[]>('eth_getLogs', [filter], {
    rank: 'settle',
  });
  const last = logs.at(-1);
  return last ? refundOf(options, channelId, last.transactionHash) : null;
}

async function refundOf(
  options: RefundOperationsOptions,
  channelId: Uint8Array,
  hash: string,
): Promise<OperationDone | null> {
  const raw = await options.chain.request('eth_getTransactionReceipt', [hash], { rank: 'settle' });
  const receipt = readReceipt(raw, hash);
  return receipt && refundedIn(receipt, channelId, options);
}
