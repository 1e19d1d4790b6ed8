import type { ChainClient } from '../../../chain/rpc/client.ts';
import { RpcError, toQuantity } from '../../../chain/rpc/wire.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { signRecoverable } from '../../../lib/secp256k1.ts';
import type { Channel } from '../../../store/ports/channels.ts';
import { isRevert } from '../../evm/is-revert.ts';
import { type ClaimRow, claimCalldata, multicallCalldata, settleCalldata } from './calldata.ts';
import { claimGas } from './claim-operations.ts';
import { type Scheme, SETTLEMENT } from './scheme.ts';

export interface BatchOptions {
  readonly chain: Pick<ChainClient, 'request'>;
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
}

interface Sorted {
  /** Null when no row is left. */
  readonly good: Batch | null;
  readonly bad: readonly { readonly due: Due; readonly reason: string }[];
}

/**
 * Simulates the claim of these rows. One row that the contract refuses reverts all. So rows that revert are split until each refused row is alone.
 * Without the sweep where the contract refuses the sweep alone: the receiver may be blocked, and the claim still records the money.
 */
export async function sortOut(options: BatchOptions, due: readonly Due[], signal: AbortSignal): Promise<Sorted> {
  const good: Due[] = [];
  const bad: { due: Due; reason: string }[] = [];
  async function sort(some: readonly Due[]): Promise<void> {
    const reason = some.length === 0 ? null : await refusal(options, claimOf(options, some), some.length, signal);
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
  const reason = await refusal(options, swept, good.length, signal);
  if (reason !== null) options.log.warn({ reason }, 'claims are not paid out: the sweep is refused');
  return { good: { due: good, calldata: reason === null ? swept : claim }, bad };
}

/** Why the contract refuses the call; null when it takes it. Throws when no node simulates it. */
async function refusal(
  { chain, sender }: BatchOptions,
  calldata: Uint8Array,
  rows: number,
  signal: AbortSignal,
): Promise<string | null> {
  const call = { from: sender, to: SETTLEMENT, data: bytesToHex(calldata), gas: toQuantity(claimGas(rows)) };
  try {
    await chain.request('eth_call', [call, 'latest'], { rank: 'settle', signal });
    return null;
  } catch (error) {
    if (error instanceof RpcError && isRevert(error)) return error.message;
    throw error;
  }
}

function claimOf({ scheme, authorizerKey }: BatchOptions, due: readonly Due[]): Uint8Array {
  const entries = due.map(({ channel, row }) => ({ channelId: channel.id, ...row }));
  const rows = due.map(({ row }) => row);
  return claimCalldata(rows, signRecoverable(scheme.claimDigest(entries), authorizerKey));
}
