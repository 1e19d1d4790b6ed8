import { type FeeState, MIN_BASE_FEE, nextFeeState } from './base-fee.ts';
import { type Rpc, toQuantity } from './rpc.ts';

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
