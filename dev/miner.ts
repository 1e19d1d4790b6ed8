import { Pool } from 'undici';

/** Makes the blocks. Between `pause` and `resume` there are only those requested with `mine`. */
export interface Miner {
  /** Makes `blocks` blocks now, also while the miner is paused. */
  mine(blocks?: number): Promise<void>;
  /** Resolves when no block is being made and none follows. */
  pause(): Promise<void>;
  resume(): void;
  paused(): boolean;
  /** The base fee in wei that the block after this one has; null for a block that this miner did not make. Waits for a block that is being made. */
  nextBaseFee(block: number): Promise<bigint | null>;
  /** Runs `work` while no block is made, so that reading and writing state is one step. */
  between<T>(work: () => Promise<T>): Promise<T>;
}

interface MinedBlock {
  readonly number: `0x${string}`;
  readonly gasUsed: `0x${string}`;
  readonly gasLimit: `0x${string}`;
}

/**
 * Makes the node's blocks at an even pace and sets each one's base fee by Arc's rule.
 * Invariant: blocks and `between` work are one chain of promises, so no two of them ever overlap.
 *
 * Why not the node's own interval mining: once paused it can be set again only in whole seconds (measured: `evm_setIntervalMining`
 * refuses 0.5), and a base fee set from outside would race its blocks. Timestamps need no help: measured on 1.7.1, the node stamps
 * blocks with the wall clock and lets several share a second, as Arc does.
 */
export function createMiner(rpc: Rpc, blockTimeMs: number, onError: (error: unknown) => void): Miner {
  /** Wei of the next block's fee by block number: eight bytes a block, as long as the network runs. Below 2^53, as Arc's highest fee is. */
  const announced: number[] = [];
  let fees: FeeState = { baseFee: MIN_BASE_FEE, smoothed: 0n };
  let last: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;
  let due = 0;

  const between = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  };

  const mineOne = async (): Promise<void> => {
    // It answers with the block. Reading the block in a call of its own takes a third of the miner's processor time.
    const block = (await rpc<MinedBlock[]>('evm_mine_detailed')).at(-1);
    if (block === undefined) throw new Error('the node made no block');
    fees = nextFeeState(fees, BigInt(block.gasUsed), BigInt(block.gasLimit));
    announced[Number(block.number)] = Number(fees.baseFee);
    await rpc('anvil_setNextBlockBaseFeePerGas', [toQuantity(fees.baseFee)]);
  };

  const schedule = (): void => {
    const now = performance.now();
    // A late block shortens the next wait, but lost time is not made up by a burst of blocks.
    due = Math.max(due + blockTimeMs, now);
    timer = setTimeout(tick, due - now);
  };

  const tick = async (): Promise<void> => {
    const own = timer;
    await between(async () => {
      if (timer === own) await mineOne();
    }).catch(onError);
    if (timer === own) schedule();
  };

  return {
    async mine(blocks = 1) {
      for (let made = 0; made < blocks; made++) await between(mineOne);
    },
    async pause() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await last;
    },
    resume() {
      if (timer !== null) return;
      due = performance.now();
      schedule();
    },
    async nextBaseFee(block) {
      const known = announced[block] ?? (await between(async () => announced[block]));
      return known === undefined ? null : BigInt(known);
    },
    paused: () => timer === null,
    between,
  };
}

const GWEI = 1_000_000_000n;

/** Arc's parameters on mainnet: the floor and the ceiling of the base fee, in wei. */
export const MIN_BASE_FEE = 20n * GWEI;
const MAX_BASE_FEE = 20_000n * GWEI;

/** What the next block's base fee is computed from. */
interface FeeState {
  readonly baseFee: bigint;
  /** Gas used, smoothed over blocks. */
  readonly smoothed: bigint;
}

/**
 * The fee state after a block, by Arc's rule: gas used is smoothed (a fifth of the newest block), and the fee moves by at most
 * 2 % towards or away from the floor, as that is above or below the target share of the gas limit. All floor division.
 * The node's own rule (EIP-1559) would let the fee of a quiet chain fall to nearly zero within a minute, which does not happen on Arc.
 */
export function nextFeeState(
  state: FeeState,
  gasUsed: bigint,
  gasLimit: bigint,
  rule: { targetBps: bigint; min: bigint } = { targetBps: 5_000n, min: MIN_BASE_FEE },
): FeeState {
  const smoothed = (80n * state.smoothed + 20n * gasUsed) / 100n;
  const target = (gasLimit * rule.targetBps) / 10_000n;
  const scale = (target * 10_000n) / 200n;
  let baseFee = state.baseFee;
  if (smoothed > target) {
    const rise = (baseFee * (smoothed - target)) / scale;
    baseFee += rise > 1n ? rise : 1n;
  } else {
    baseFee -= (baseFee * (target - smoothed)) / scale;
  }
  if (baseFee < rule.min) baseFee = rule.min;
  if (baseFee > MAX_BASE_FEE) baseFee = MAX_BASE_FEE;
  return { baseFee, smoothed };
}

/** A node refused a call or did not answer. */
class RpcFailed extends Error {
  readonly code: number | null;
  readonly data: unknown;
  constructor(method: string, message: string, code: number | null = null, data: unknown = undefined, cause?: unknown) {
    super(`${method}: ${message}`, { cause });
    this.name = 'RpcFailed';
    this.code = code;
    this.data = data;
  }
}

/** One JSON-RPC call; throws RpcFailed with the node's own message. */
export type Rpc = <T>(method: string, params?: readonly unknown[]) => Promise<T>;

interface Reply<T> {
  readonly result: T;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Longer than any call to a node on the same machine takes, short enough that a dead one is noticed. */
const TIMEOUT_MS = 15_000;

const HEADERS = { 'content-type': 'application/json' };

/**
 * JSON-RPC to one node over HTTP; nothing is retried, because the embedded network's own calls are not all repeatable.
 * Blocks alone make four calls a second. `fetch` takes three times the processor time for each.
 */
export function createRpc(url: string): Rpc {
  const pool = new Pool(url);
  let id = 0;
  return async <T>(method: string, params: readonly unknown[] = []): Promise<T> => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const reply = await pool
      .request({ path: '/', method: 'POST', headers: HEADERS, body, signal: AbortSignal.timeout(TIMEOUT_MS) })
      .then((response) => response.body.json() as Promise<Reply<T>>)
      .catch((cause: unknown) => {
        throw new RpcFailed(method, `no answer from ${url}`, null, undefined, cause);
      });
    if (reply.error) throw new RpcFailed(method, reply.error.message, reply.error.code, reply.error.data);
    return reply.result;
  };
}

/** A number as JSON-RPC writes it. */
export function toQuantity(value: bigint | number): `0x${string}` {
  return `0x${value.toString(16)}`;
}
