import { logsCall, MAX_LOG_SPAN, readLogs } from '../../chain/block-logs.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { topicOf } from './abi-words.ts';
import { TRANSFER } from './token.ts';

/**
 * Blocks that are left for the next round. A payment that the chain shows may still be open in the ledger: ten minutes
 * on Arc.
 */
const LEFT_BLOCKS = 1200;
/** Blocks that one round reads at the most. What is older than that is passed over: a surplus stops nothing. */
const MOST_BLOCKS = 172_800;
/** Hex digits of one word with its prefix. */
const ONE_WORD = 66;
/** Transactions that are named. */
const MOST_NAMED = 5;

interface SurplusOptions {
  readonly chain: Pick<ChainClient, 'batch'>;
  /** In lower case. */
  readonly usdc: `0x${string}`;
  readonly payTo: Uint8Array;
  /** A contract whose transfers are not counted. */
  readonly without: Uint8Array;
  /** What the ledger knows to have come in by a transaction, in base units. */
  readonly known: (transaction: Uint8Array) => Promise<bigint>;
}

/** What came in beyond the ledger. `block`: the last block that was read. */
export interface Surplus {
  readonly block: number;
  readonly transfers: number;
  /** Base units. */
  readonly amount: bigint;
  /** Some of the transactions. */
  readonly transactions: readonly string[];
}

/**
 * Counts what came in to the seller and is in no row: a gift, dust, or an authorization that a third party sent and
 * that bought nothing here. Anybody can send it, so it is reported and nothing more.
 */
export function createSurplusCount({ chain, usdc, payTo, without, known }: SurplusOptions) {
  const query = { addresses: [usdc], topics: [TRANSFER as `0x${string}`, null, topicOf(payTo)] };

  /** The transfers of a span by transaction; null when the span cannot be read whole. */
  async function read(from: number, until: number): Promise<Map<string, bigint> | null> {
    const [outcome] = await chain.batch([logsCall(query, from, until)]);
    const logs = readLogs(outcome, { from, to: until, atOf: () => 0, hashOf: () => null });
    if (logs === null) return null;
    const sums = new Map<string, bigint>();
    for (const { transactionHash: hash, topics, data } of logs)
      if (topics[1] !== topicOf(without) && data.length === ONE_WORD)
        sums.set(hash, (sums.get(hash) ?? 0n) + BigInt(data));
    return sums;
  }

  return {
    /**
     * Reads the blocks after `after` as far as the ledger has settled them by now. Rejects when the ledger or the chain
     * cannot be read.
     */
    async count(after: number, head: number): Promise<Surplus> {
      const last = head - LEFT_BLOCKS;
      let block = Math.max(after, last - MOST_BLOCKS);
      let span = MAX_LOG_SPAN;
      let [transfers, amount] = [0, 0n];
      const transactions: string[] = [];
      while (block < last && span > 0) {
        const until = Math.min(last, block + span);
        const sums = await read(block + 1, until);
        if (sums === null) {
          span = Math.floor(span / 2);
          continue;
        }
        for (const [hash, sum] of sums) {
          const more = sum - (await known(hexToBytes(hash)));
          if (more <= 0n) continue;
          transfers += 1;
          amount += more;
          if (transactions.length < MOST_NAMED) transactions.push(hash);
        }
        block = until;
      }
      return { block, transfers, amount, transactions };
    },
  };
}
