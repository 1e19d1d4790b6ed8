import { MIN_BASE_FEE, nextFeeState } from '../../../../dev/miner.ts';
import { seededRandom } from '../../random.ts';
import { type Hex, hash, makeTransaction, type SimTransaction } from './transactions.ts';

/** A block of the simulated chain. */
export interface SimBlock {
  readonly number: number;
  readonly hash: Hex;
  readonly parentHash: Hex;
  readonly at: number;
  readonly baseFee: bigint;
  readonly nextBaseFee: bigint;
  readonly smoothed: bigint;
  readonly gasUsed: bigint;
  readonly transactions: readonly SimTransaction[];
}

export const GAS_LIMIT = 30_000_000n;

/** What a simulated chain is made of. */
export interface SimChainOptions {
  readonly seed: string;
  /** When block 0 was made, Unix milliseconds; the others follow every half second. */
  readonly genesisMs: number;
  /** Mean transactions of a block. */
  readonly transactions: number;
  /** The last block of the chain. */
  readonly lastBlock?: number;
}

/** The one chain that all simulated nodes serve. */
export interface SimChain {
  /** The newest block at a time. */
  headAt(ms: number): number;
  block(number: number): SimBlock;
  /** Replaces the newest `depth` blocks at that time by others, which Arc's finality rules out. */
  reorg(depth: number, ms: number): void;
  /** No blocks for so long, from now on. */
  stall(fromMs: number, forMs: number): void;
}

const BLOCK_MS = 500;
const NO_PARENT: Hex = `0x${'0'.repeat(64)}`;

/** Makes a value when it is first asked for. */
function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Blocks are made when first asked for, each from the seed, its number and how often it was replaced: the same seed is the same chain. */
export function createSimChain(options: SimChainOptions): SimChain {
  const { seed, genesisMs, transactions, lastBlock = Number.MAX_SAFE_INTEGER } = options;
  const blocks: SimBlock[] = [];
  const stalls: { fromMs: number; forMs: number }[] = [];
  let fork = 0;

  function make(number: number): SimBlock {
    const parent = blocks[number - 1];
    const made = fork;
    // Most blocks of a long, empty chain are only asked for their fees: nothing is drawn or hashed for them.
    const random = lazy(() => seededRandom(`block/${made}/${number}`, seed));
    const count = number === 0 || transactions === 0 ? 0 : Math.floor(random()() * (2 * transactions + 1));
    const list = Array.from({ length: count }, (_, at) => makeTransaction(`${seed}/${made}/${number}/${at}`, random()));
    const used = list.reduce((sum, { gasUsed }) => sum + gasUsed, 0);
    // Now and then a burst fills the block and drives the fee up.
    const burst = Math.floor(number / 40) % 5 === 3;
    const gasUsed = BigInt(burst ? 20_000_000 + Math.floor(random()() * 10_000_000) : used);
    const baseFee = parent?.nextBaseFee ?? MIN_BASE_FEE;
    const next = nextFeeState({ baseFee, smoothed: parent?.smoothed ?? 0n }, gasUsed, GAS_LIMIT);
    const ownHash = lazy(() => hash('block', seed, made, number));
    return {
      number,
      get hash() {
        return ownHash();
      },
      get parentHash() {
        return parent?.hash ?? NO_PARENT;
      },
      at: Math.floor((genesisMs + number * BLOCK_MS) / 1000),
      baseFee,
      nextBaseFee: next.baseFee,
      smoothed: next.smoothed,
      gasUsed,
      transactions: list,
    };
  }

  const self: SimChain = {
    headAt(ms) {
      const lost = stalls.reduce((sum, { fromMs, forMs }) => sum + Math.min(Math.max(ms - fromMs, 0), forMs), 0);
      return Math.min(lastBlock, Math.max(0, Math.floor((ms - lost - genesisMs) / BLOCK_MS)));
    },
    block(number) {
      while (blocks.length <= number) blocks.push(make(blocks.length));
      return blocks[number]!;
    },
    reorg(depth, ms) {
      const head = self.headAt(ms);
      self.block(head);
      fork += 1;
      blocks.length = Math.max(1, head - depth + 1);
      self.block(head);
    },
    stall: (fromMs, forMs) => void stalls.push({ fromMs, forMs }),
  };
  return self;
}
