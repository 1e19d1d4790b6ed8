import type { ChainClient } from '../../../chain/rpc/client.ts';
import { RpcError, toQuantity } from '../../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../../errors.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { signRecoverable } from '../../../lib/secp256k1.ts';
import type { Channel } from '../../../store/ports/channels.ts';
import { isRevert } from '../../usdc/payer-reads.ts';
import { type ClaimRow, claimCalldata, multicallCalldata, settleCalldata } from './calldata.ts';
import { claimGas } from './claim-operations.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';

export interface BatchOptions {
  readonly chain: Pick<ChainClient, 'each' | 'agreed'>;
  readonly scheme: Pick<Scheme, 'claimDigest'>;
  /** The key of `receiverAuthorizer`, 32 bytes. It signs claims and needs no funds. */
  readonly authorizerKey: Uint8Array;
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
  /** The relayer's address, which simulations use as the sender. */
  readonly sender: `0x${string}`;
  readonly log: { warn(detail: object, message: string): void };
}

/** A channel and the row that claims it. */
export interface Due {
  readonly channel: Channel;
  readonly row: ClaimRow;
}

/** Rows that pass the simulation together, and the calldata that claims them. */
export interface Batch {
  readonly due: readonly Due[];
  readonly calldata: Uint8Array;
  /** The block at which they were simulated. It is not older than the states of the channels. */
  readonly block: number;
}

interface Sorted {
  /** Null when no row is left. */
  readonly good: Batch | null;
  readonly bad: readonly { readonly due: Due; readonly reason: string }[];
}

/**
 * Simulates the claim of these rows, at the agreed head or the block of the newest of their states. One row that the
 * contract refuses reverts all. So rows that revert are split until each refused row is alone. Without the sweep where
 * the contract refuses the sweep alone: the receiver may be blocked, and the claim still records the money. With
 * `alarmBlock` at that block: one provider alone may have it, so its word is enough.
 */
export async function sortOut(
  options: BatchOptions,
  due: readonly Due[],
  signal: AbortSignal,
  alarmBlock?: number,
): Promise<Sorted> {
  const good: Due[] = [];
  const bad: { due: Due; reason: string }[] = [];
  if (due.length === 0) return { good: null, bad };
  const head = alarmBlock ?? (await options.chain.agreed.head({ rank: 'settle', signal }));
  const block = due.reduce((newest, { channel }) => Math.max(newest, channel.state.block), head);
  const enough = alarmBlock === undefined ? 2 : 1;
  const refusal = (calldata: Uint8Array, rows: number) =>
    whyRefused(options, { calldata, gas: claimGas(rows), block, enough }, signal);
  async function sort(some: readonly Due[]): Promise<void> {
    const reason = some.length === 0 ? null : await refusal(claimOf(options, some), some.length);
    if (reason === null) return void good.push(...some);
    const [only] = some;
    if (some.length === 1 && only) return void bad.push({ due: only, reason });
    const half = Math.ceil(some.length / 2);
    await sort(some.slice(0, half));
    await sort(some.slice(half));
  }
  await sort(due);
  if (good.length === 0) return { good: null, bad };
  const claim = claimOf(options, good);
  const swept = multicallCalldata([claim, settleCalldata(options.receiver, options.token)]);
  const reason = await refusal(swept, good.length);
  if (reason !== null) options.log.warn({ reason }, 'claims are not paid out: the sweep is refused');
  return { good: { due: good, calldata: reason === null ? swept : claim, block }, bad };
}

/** A call of the settlement contract, and the block at which it is simulated. */
interface Simulated {
  readonly calldata: Uint8Array;
  readonly gas: bigint;
  readonly block: number;
  /** How many providers must refuse it, where that many are configured; 2 by default. */
  readonly enough?: number;
}

/**
 * Why the contract refuses the call at this block; null when it takes it. Every provider is asked. `enough` must say
 * that it refuses, and more than say that it takes it, where that many are configured: a refusal stops the sales of a
 * channel. Rejects when too few answer.
 */
export async function whyRefused(
  { chain, sender }: Pick<BatchOptions, 'chain' | 'sender'>,
  { calldata, gas, block, enough = 2 }: Simulated,
  signal?: AbortSignal,
): Promise<string | null> {
  const call = { from: sender, to: SETTLEMENT, data: bytesToHex(calldata), gas: toQuantity(gas) };
  const calls = [{ method: 'eth_call', params: [call, toQuantity(block)] }];
  const outcomes = (await chain.each(calls, { rank: 'settle', ...(signal && { signal }) })).map(([outcome]) => outcome);
  const errors = outcomes.flatMap((outcome) => (outcome && 'error' in outcome ? [outcome.error] : []));
  const refusals = errors.filter((error) => error instanceof RpcError && isRevert(error));
  const taken = outcomes.filter((outcome) => outcome && 'result' in outcome).length;
  if (taken > 0 && taken >= refusals.length) return null;
  const [first] = refusals;
  if (first && refusals.length >= Math.min(enough, chain.agreed.witnesses)) return first.message;
  throw (
    errors.find((error) => !refusals.includes(error)) ?? new UpstreamFailed('chain', 'too few providers simulate it')
  );
}

function claimOf({ scheme, authorizerKey }: BatchOptions, due: readonly Due[]): Uint8Array {
  const entries = due.map(({ channel, row }) => ({ channelId: channel.id, ...row }));
  const rows = due.map(({ row }) => row);
  return claimCalldata(rows, signRecoverable(scheme.claimDigest(entries), authorizerKey));
}
