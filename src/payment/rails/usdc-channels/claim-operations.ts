import type { ChainClient } from '../../../chain/rpc/client.ts';
import { UpstreamFailed } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChannelOperation, ChannelStore, OperationEnd } from '../../../store/ports/channels.ts';
import type { MinedTransaction, Operation, OperationDone } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import { receiptOf } from '../../usdc/evidence.ts';
import { claimedRows } from './calldata.ts';
import { channelEvents } from './channel-events.ts';
import type { ChannelReader } from './channel-reader.ts';
import { eventTransactionHashes } from './event-logs.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';

/**
 * Gas of a claim's transaction. A row uses 23,900 on the embedded network, the sweep and the transaction itself 75,000. Arc's own USDC makes the
 * sweep dearer. Only used gas is paid for.
 */
const CLAIM_GAS = { base: 250_000n, row: 40_000n };
/** The claim's event: keccak256 of `Claimed(bytes32,address,uint128,uint128)`. */
const CLAIMED = '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd';
const RECORDED = 'its rows are recorded by a transaction that the logs do not show';

export interface ClaimOperationsOptions {
  readonly store: Pick<ChannelStore, 'noteBroadcast' | 'end' | 'openOperations' | 'findDone'>;
  readonly relayer: Pick<Relaying, 'operate'>;
  readonly reader: Pick<ChannelReader, 'read'>;
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly scheme: Pick<Scheme, 'channelId'>;
  /** The fencing token of this process's lease; undefined where only one process can settle. */
  readonly fencingToken?: number | undefined;
  readonly clock: Clock;
}

/** A row of a claim as the evidence needs it: the channel, and what is recorded in all afterwards. */
interface Recorded {
  readonly channelId: Uint8Array;
  readonly totalClaimed: bigint;
}

/**
 * `leastBlock`: the block at which the claim was simulated; null where no two providers have reached it. `onMined`
 * hears of each transaction with it that was mined.
 */
interface CarryOut {
  readonly leastBlock?: number | null;
  readonly onMined?: (receipt: MinedTransaction) => void;
}

/** The gas limit of a transaction that claims this many rows and sweeps. */
export function claimGas(rows: number): bigint {
  return CLAIM_GAS.base + BigInt(rows) * CLAIM_GAS.row;
}

/** Carries out the claims that stand in the ledger, through our relayer, and writes down their ends. */
export function createClaimOperations(options: ClaimOperationsOptions) {
  const { store, relayer, clock, fencingToken } = options;

  function operationOf({ id, transaction }: ChannelOperation, calldata: Uint8Array, more: CarryOut): Operation {
    const rows = rowsOf(options, calldata);
    const { leastBlock = 0 } = more;
    return {
      ...{ id, to: hexToBytes(SETTLEMENT), data: calldata, gas: claimGas(rows.length) },
      broadcast: transaction !== null,
      ...(leastBlock !== null && { leastBlock }),
      readReceipt: (receipt) => {
        more.onMined?.(receipt);
        return claimedIn(receipt, rows);
      },
      lookUp: async (signal) => {
        const found = await lookUp(options, rows, signal);
        return found === 'recorded' ? null : found;
      },
      note: async (noted) => (await store.noteBroadcast([{ id, transaction: noted }], fencingToken)).has(id),
    };
  }

  /** Carries out one open claim. An end that is unknown leaves its row open. Returns what was claimed; null unless it ended as done. */
  async function carryOut(row: ChannelOperation, more: CarryOut = {}): Promise<OperationDone | null> {
    const { id, calldata } = row;
    if (!calldata) return null;
    const outcome = await relayer.operate(operationOf(row, calldata, more));
    if (outcome.kind === 'unknown') return null;
    await store.end(id, endOf(outcome, clock.nowMs()));
    return outcome.kind === 'done' ? outcome : null;
  }

  return {
    carryOut,
    /**
     * Carries out the claims that an earlier process or round has left open. A claim that the chain shows ends without a transaction. Any other is
     * sent again: the contract skips what it has recorded. Rejects when an end cannot be read: a claim of the same rows beside an open one could take
     * that one's transaction for its own. The alarm counts such rounds.
     */
    async resume(signal: AbortSignal): Promise<void> {
      const open = (await store.openOperations(MOST_OPEN)).filter(({ kind }) => kind === 'claim');
      for (const row of open) {
        const shown = await shownEnd(options, row, signal);
        const end = shown === 'recorded' ? ({ kind: 'failed', reason: RECORDED } as const) : shown;
        if (end) await store.end(row.id, endOf(end, clock.nowMs()));
        else await carryOut(row);
      }
    },
  };
}

function rowsOf({ scheme }: Pick<ClaimOperationsOptions, 'scheme'>, calldata: Uint8Array): Recorded[] {
  return claimedRows(calldata).map(({ config, totalClaimed }) => ({
    channelId: scheme.channelId(config),
    totalClaimed,
  }));
}

/** Open operations that one round looks at. There is one at a time, unless rounds ended as unknown. */
const MOST_OPEN = 100;

function endOf(
  outcome: OperationDone | { readonly kind: 'failed'; readonly reason: string },
  endedAt: number,
): OperationEnd {
  if (outcome.kind === 'failed') return { state: 'failed', reason: outcome.reason, endedAt };
  return { state: 'done', amount: outcome.amount, transaction: outcome.transaction, endedAt };
}

/**
 * What a transaction recorded for these rows; null when it recorded nothing for them. A row that was recorded before has no event. The rows of one
 * transaction are recorded together or not at all.
 */
function claimedIn(receipt: MinedTransaction, rows: readonly Recorded[]): OperationDone | null {
  const wanted = new Map(rows.map(({ channelId, totalClaimed }) => [bytesToHex(channelId), totalClaimed]));
  const claimed = channelEvents(receipt).flatMap((event) =>
    event.kind === 'Claimed' && wanted.get(bytesToHex(event.channelId)) === event.totalClaimed ? [event.amount] : [],
  );
  if (claimed.length === 0) return null;
  const transaction = hexToBytes(receipt.transactionHash);
  const amount = claimed.reduce((sum, each) => sum + each, 0n);
  return { kind: 'done', transaction, block: Number(receipt.blockNumber), amount };
}

/**
 * How a claim that was left open ended, by the noted transaction or by another. Null when none was noted, or the chain shows no end. The noted one counts
 * however long ago it was mined, unless another operation has ended by it.
 */
async function shownEnd(
  options: ClaimOperationsOptions,
  { transaction, calldata }: ChannelOperation,
  signal: AbortSignal,
): Promise<OperationDone | 'recorded' | null> {
  if (!transaction || !calldata) return null;
  const rows = rowsOf(options, calldata);
  const noted = await receiptOf(options.chain, bytesToHex(transaction), { rank: 'settle', signal });
  const done = noted && claimedIn(noted, rows);
  if (done && !(await options.store.findDone(transaction))) return done;
  return lookUp(options, rows, signal);
}

/**
 * Done when every row is recorded and the logs show a transaction that recorded one of them. A transaction by which another operation has ended counts
 * for that one alone. `recorded` when the logs show no other: there is nothing left to send. Null when a row is not recorded. Rejects when the chain or
 * the ledger cannot be read, also when the nodes are behind the block at which the rows were read.
 */
async function lookUp(
  options: ClaimOperationsOptions,
  rows: readonly Recorded[],
  signal: AbortSignal,
): Promise<OperationDone | 'recorded' | null> {
  const { chain, reader, store } = options;
  const states = await reader.read(
    rows.map(({ channelId }) => channelId),
    { signal },
  );
  const isRecorded = rows.every(({ totalClaimed }, at) => (states[at]?.totalClaimed ?? 0n) >= totalClaimed);
  if (!isRecorded) return null;
  const readAt = states[0]?.block ?? 0;
  const topics = [CLAIMED, rows.map(({ channelId }) => bytesToHex(channelId))];
  for (const hash of new Set((await eventTransactionHashes(chain, topics, readAt, { signal })).reverse())) {
    if (await store.findDone(hexToBytes(hash))) continue;
    const receipt = await receiptOf(chain, hash, { rank: 'settle', signal });
    if (!receipt) throw new UpstreamFailed('chain', 'the transaction of a claim cannot be read');
    const done = claimedIn(receipt, rows);
    if (done) return done;
  }
  return 'recorded';
}
