import type { ChainClient } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChannelOperation, ChannelStore, OperationEnd } from '../../../store/ports/channels.ts';
import { readReceipt } from '../../evm/evidence.ts';
import type { MinedTransaction, Operation, OperationDone } from '../../operation.ts';
import type { Relaying } from '../../settler.ts';
import { claimedRows } from './calldata.ts';
import { channelEvents } from './channel-events.ts';
import type { ChannelReader } from './channel-reader.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';

/**
 * Gas of a claim's transaction. A row uses 23,900 on the embedded network, the sweep and the transaction itself 75,000. Arc's own USDC makes the
 * sweep dearer. Only used gas is paid for.
 */
const CLAIM_GAS = { base: 250_000n, row: 40_000n };
/** The claim's event: keccak256 of `Claimed(bytes32,address,uint128,uint128)`. */
const CLAIMED = '0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd';
/** Public nodes refuse `eth_getLogs` over 10,000 blocks and more. On Arc these are 83 minutes. */
const LOG_SPAN = 9_999;
const RECORDED = 'its rows are recorded by a transaction that the logs do not show';

export interface ClaimOperationsOptions {
  readonly store: Pick<ChannelStore, 'noteBroadcast' | 'end' | 'openOperations' | 'findDone'>;
  readonly relayer: Pick<Relaying, 'operate'>;
  readonly reader: ChannelReader;
  readonly chain: Pick<ChainClient, 'request'>;
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

/** The gas limit of a transaction that claims this many rows and sweeps. */
export function claimGas(rows: number): bigint {
  return CLAIM_GAS.base + BigInt(rows) * CLAIM_GAS.row;
}

/** Carries out the claims that stand in the ledger, through our relayer, and writes down their ends. */
export function createClaimOperations(options: ClaimOperationsOptions) {
  const { store, relayer, clock, scheme, fencingToken } = options;

  const rowsOf = (calldata: Uint8Array): Recorded[] =>
    claimedRows(calldata).map(({ config, totalClaimed }) => ({ channelId: scheme.channelId(config), totalClaimed }));

  function operationOf({ id, transaction }: ChannelOperation, calldata: Uint8Array): Operation {
    const rows = rowsOf(calldata);
    return {
      ...{ id, to: hexToBytes(SETTLEMENT), data: calldata, gas: claimGas(rows.length) },
      broadcast: transaction !== null,
      readReceipt: (receipt) => claimedIn(receipt, rows),
      lookUp: async (signal) => {
        const found = await lookUp(options, rows, signal);
        return found === 'recorded' ? null : found;
      },
      note: async (noted) => (await store.noteBroadcast([{ id, transaction: noted }], fencingToken)).has(id),
    };
  }

  /** Carries out one open claim. An end that is unknown leaves its row open. Returns what was claimed; null unless it ended as done. */
  async function carryOut(row: ChannelOperation): Promise<OperationDone | null> {
    const { id, calldata } = row;
    if (!calldata) return null;
    const outcome = await relayer.operate(operationOf(row, calldata));
    if (outcome.kind === 'unknown') return null;
    await store.end(id, endOf(outcome, clock.nowMs()));
    return outcome.kind === 'done' ? outcome : null;
  }

  return {
    carryOut,
    /**
     * Carries out the claims that an earlier process or round has left open. A claim that the chain shows ends without a transaction. Any other is
     * sent again: the contract skips what it has recorded.
     */
    async resume(signal: AbortSignal): Promise<void> {
      const open = (await store.openOperations(MOST_OPEN)).filter(({ kind }) => kind === 'claim');
      for (const row of open) {
        const shown = row.transaction && row.calldata ? await lookUp(options, rowsOf(row.calldata), signal) : null;
        const end = shown === 'recorded' ? ({ kind: 'failed', reason: RECORDED } as const) : shown;
        if (end) await store.end(row.id, endOf(end, clock.nowMs()));
        else await carryOut(row);
      }
    },
  };
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
 * Done when every row is recorded and the logs show a transaction that recorded one of them. A transaction by which another operation has ended counts
 * for that one alone. `recorded` when the logs show no other: there is nothing left to send. Null when a row is not recorded.
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
  const head = states[0]?.block ?? 0;
  const topics = [CLAIMED, rows.map(({ channelId }) => bytesToHex(channelId))];
  const range = { fromBlock: toQuantity(Math.max(0, head - LOG_SPAN + 1)), toBlock: toQuantity(head) };
  const filter = { address: SETTLEMENT, topics, ...range };
  const logs = await chain.request<{ transactionHash: string }[]>('eth_getLogs', [filter], { rank: 'settle', signal });
  for (const hash of new Set(logs.map(({ transactionHash }) => transactionHash).reverse())) {
    if (await store.findDone(hexToBytes(hash))) continue;
    const raw = await chain.request('eth_getTransactionReceipt', [hash], { rank: 'settle', signal });
    const receipt = readReceipt(raw, hash);
    const done = receipt && claimedIn(receipt, rows);
    if (done) return done;
  }
  return 'recorded';
}
