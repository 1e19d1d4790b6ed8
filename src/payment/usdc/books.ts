import { logsCall, MAX_LOG_SPAN, readLogs } from '../../chain/block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { RpcOptions, RpcOutcome } from '../../chain/rpc/wire.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { Payment } from '../../store/ports/payments.ts';
import type { Authorization, BookVerdict, RailBooks } from '../settler.ts';
import { type Evidence, paymentsIn, readReceipt, receiptStatements, type TransactionReceipt } from './evidence.ts';
import { TRANSFER, topicOf } from './token.ts';

// Compares rows that a transfer of the token settles with the chain. Nobody waits for these reads.
// 1. The noted receipt has the row's own `Transfer` after its own `AuthorizationUsed`: nothing is missing.
// 2. Else the chain is asked what became of the authorization. Unused, or paid something else: the amount is missing.
// 3. What came in beyond the ledger is counted.

/** Sent to another provider than the one that settlements are polled from. */
const READS = { rank: 'collect', turn: 1 } as const satisfies RpcOptions;
/** Two must say that something is missing. `turn` alone may come back to the same one where others are limited. */
const SECOND_LOOK: RpcOptions = { rank: 'collect', turn: 0, statements: receiptStatements };
const MOST_AT_ONCE = 100;
const HASH_BYTES = 32;
/** Blocks by which a provider may be behind another: ten seconds on Arc. */
const BEHIND_BLOCKS = 20;
/** Blocks that are searched for the use of an authorization without a noted block: a day on Arc. */
const SEARCHED_BLOCKS = 172_800;

/** Null: the provider knows no receipt. `unread`: it did not say. */
export type ReceiptRead = TransactionReceipt | null | 'unread';

export function forBooks(chain: ChainClient): ChainClient {
  return {
    ...chain,
    request: (method, params, options) => chain.request(method, params, { ...READS, ...options }),
    batch: (calls, options) => chain.batch(calls, { ...READS, ...options }),
  };
}

/** Receipts by hash (32 bytes). Never rejects. `turn` 0 is a second look: what no two of several say is `unread`. */
export async function readReceipts(
  chain: Pick<ChainClient, 'batch'>,
  transactions: readonly Uint8Array[],
  turn: 0 | 1 = READS.turn,
): Promise<(transaction: Uint8Array) => ReceiptRead> {
  const hashes = [...new Set(transactions.map(bytesToHex))];
  const found = new Map<string, ReceiptRead>();
  for (let start = 0; start < hashes.length; start += MOST_AT_ONCE) {
    const some = hashes.slice(start, start + MOST_AT_ONCE);
    const calls = some.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
    const outcomes = await chain.batch(calls, turn === 0 ? SECOND_LOOK : READS).catch((): RpcOutcome[] => []);
    for (const [at, hash] of some.entries()) found.set(hash, receiptIn(outcomes[at], hash));
  }
  return (transaction) => {
    const read = found.get(bytesToHex(transaction));
    return read === undefined ? 'unread' : read;
  };
}

function receiptIn(outcome: RpcOutcome | undefined, hash: string): ReceiptRead {
  if (!outcome || !('result' in outcome)) return 'unread';
  return outcome.result === null ? null : (readReceipt(outcome.result, hash) ?? 'unread');
}

interface TransferBooksOptions {
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly evidence: Pick<Evidence, 'lookup'>;
  /** In lower case. */
  readonly usdc: string;
  /** The contract that passes the money on, where the rail's payments are calls of one. */
  readonly passedTo?: Uint8Array;
}

export function createTransferBooks({ chain, evidence, usdc, passedTo }: TransferBooksOptions): RailBooks {
  const authorizationOf = ({ payer, payTo, amount, validAfter, validBefore, nonce }: Payment): Authorization => ({
    from: payer,
    to: payTo,
    value: amount,
    validAfter,
    validBefore,
    nonce,
    signature: new Uint8Array(),
    ...(passedTo && { passedTo }),
  });

  async function lookUp(row: Payment, head: number): Promise<BookVerdict> {
    if ((row.block ?? 0) > head) return { kind: 'unread', detail: 'its block is not reached' };
    const fromBlock = row.checkedBlock ?? row.block ?? head - SEARCHED_BLOCKS;
    const atBlock = Math.max(row.block ?? 0, head - BEHIND_BLOCKS, 0);
    const options = { atBlock, rank: 'collect' } as const;
    const found = await evidence.lookup(authorizationOf(row), fromBlock, options).catch(() => null);
    switch (found?.kind) {
      case 'settled':
        return overcharge(row);
      case 'failed':
        return { kind: 'missing', amount: row.amount, detail: `it has not paid: ${found.reason}` };
      case 'open':
        return { kind: 'missing', amount: row.amount, detail: 'it has not paid: its authorization is unused' };
      default:
        return { kind: 'unread', detail: 'the chain does not say what became of its authorization' };
    }
  }

  return {
    async compare(rows, head) {
      const receiptOf = await readReceipts(chain, rows.flatMap(hashOf));
      const verdicts: BookVerdict[] = [];
      for (const row of rows) {
        const [transaction] = hashOf(row);
        const receipt = transaction ? receiptOf(transaction) : null;
        if (receipt === 'unread') verdicts.push({ kind: 'unread', detail: 'its receipt cannot be read' });
        else if (receipt !== null && paymentsIn(receipt, usdc)(authorizationOf(row)) !== null)
          verdicts.push(overcharge(row));
        else verdicts.push(await lookUp(row, head));
      }
      return verdicts;
    },
  };
}

const hashOf = ({ transaction }: Payment): Uint8Array[] => (transaction?.length === HASH_BYTES ? [transaction] : []);

/** The row of a shown payment may say that more was paid than signed for. A sale in a channel charges the deposit. */
function overcharge({ charged, amount }: Payment): BookVerdict {
  const beyond = (charged ?? 0n) - amount;
  if (beyond <= 0n) return { kind: 'shown' };
  return { kind: 'missing', amount: beyond, detail: 'the row says that more was paid than was signed for' };
}

/** Blocks left for the next round, ten minutes on Arc: a payment that the chain shows may be open in the ledger. */
const LEFT_BLOCKS = 1200;
/** Most blocks of one round. What is older is passed over: a surplus stops nothing. */
const MOST_BLOCKS = 172_800;
/** Hex digits of one word, with its prefix. */
const ONE_WORD = 66;
const MOST_NAMED = 5;

interface SurplusOptions {
  readonly chain: Pick<ChainClient, 'batch'>;
  readonly usdc: `0x${string}`;
  readonly payTo: Uint8Array;
  /** Transfers of these contracts are not counted. */
  readonly without: readonly Uint8Array[];
  /** What the ledger knows to have come in by a transaction, in base units. */
  readonly known: (transaction: Uint8Array) => Promise<bigint>;
}

/** `block`: the last one that was read. */
interface Surplus {
  readonly block: number;
  readonly transfers: number;
  readonly amount: bigint;
  readonly transactions: readonly string[];
}

/** Counts gifts, dust, and authorizations that bought nothing here. Anybody can send them, so it only reports. */
export function createSurplusCount({ chain, usdc, payTo, without, known }: SurplusOptions) {
  const query = { addresses: [usdc], topics: [TRANSFER as `0x${string}`, null, topicOf(payTo)] };
  const passedOver = without.map(topicOf);

  /** By transaction; null when the span cannot be read whole. */
  async function read(from: number, until: number): Promise<Map<string, bigint> | null> {
    const [outcome] = await chain.batch([logsCall(query, from, until)]);
    const logs = readLogs(outcome, { from, to: until, atOf: () => 0, hashOf: () => null });
    if (logs === null) return null;
    const sums = new Map<string, bigint>();
    for (const { transactionHash: hash, topics, data } of logs)
      if (!passedOver.some((topic) => topic === topics[1]) && data.length === ONE_WORD)
        sums.set(hash, (sums.get(hash) ?? 0n) + BigInt(data));
    return sums;
  }

  return {
    /** Reads the blocks after `after` that the ledger has settled. Rejects when it or the chain cannot be read. */
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
