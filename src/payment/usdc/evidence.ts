import { z } from 'zod';
import { MAX_LOG_SPAN } from '../../chain/block.ts';
import { readAtBlock } from '../../chain/named-block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import {
  account,
  data,
  parseAnswer,
  type Rank,
  type ReadStatements,
  type RpcOptions,
  readOutcome,
  type Statement,
  toQuantity,
  word,
} from '../../chain/rpc/wire.ts';
import { Unconfirmed } from '../../chain/rpc/witnesses.ts';
import { hexToBytes } from '../../lib/hex.ts';
import { type Authorization, EXPIRED, type Found, NONCE_USED, type Outcome } from '../settler.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, authorizationStateCalldata, TRANSFER, topicOf } from './token.ts';

// How authorizations ended, also by third parties. Paid is a mined transaction with `AuthorizationUsed(from, nonce)`
// and, before the next such event, the token's `Transfer(from, to, value)`. Receipts and ends count by two providers.

interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

export interface TransactionReceipt {
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash?: string | undefined;
  readonly status: string;
  readonly gasUsed: string;
  readonly effectiveGasPrice?: string | undefined;
  readonly logs: readonly Log[];
}

const number = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const receiptShape = z.object({
  transactionHash: word,
  blockNumber: number,
  gasUsed: number,
  status: z.enum(['0x0', '0x1']),
  blockHash: word.optional(),
  effectiveGasPrice: number.optional(),
  logs: z.array(z.object({ address: account, topics: z.array(word), data })),
});

/** Reads a node's answer. Null for any but this transaction's receipt, because it proves nothing. */
export function readReceipt(raw: unknown, hash: string): TransactionReceipt | null {
  const parsed = receiptShape.safeParse(raw);
  return parsed.success && parsed.data.transactionHash === hash.toLowerCase() ? parsed.data : null;
}

/** What two providers must give alike. Some leave out the price of the gas. */
interface SaidReceipt {
  readonly transactionHash: string;
  readonly blockHash?: string;
  readonly blockNumber: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly logs: readonly Log[];
}

/** Compared as text, because a batch of 100 payments has hundreds of logs; `readReceipt` checks the one that counts. */
export const receiptStatements: ReadStatements = (outcomes, calls) =>
  calls.map(({ params: [hash] }, at) => {
    const outcome = outcomes[at];
    return outcome && 'result' in outcome ? statementOf(outcome.result as SaidReceipt | null, String(hash)) : null;
  });

/** The form that `readReceipt` takes: only what it can read may count for two. */
const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const WORD = /^0x[0-9a-fA-F]{64}$/;
const LOGS = /^(0x[0-9a-f]{40} (0x[0-9a-f]{64}(,0x[0-9a-f]{64}){0,3})? 0x([0-9a-f]{2})*\n)*$/;

function statementOf(raw: SaidReceipt | null, hash: string): Statement | null {
  try {
    if (raw?.transactionHash.toLowerCase() !== hash.toLowerCase()) return null;
    const { blockHash, blockNumber, status, gasUsed } = raw;
    const logs = raw.logs
      .map(({ address, topics, data }) => `${address} ${topics.join()} ${data}\n`)
      .join('')
      .toLowerCase();
    const isReadable = QUANTITY.test(blockNumber) && QUANTITY.test(gasUsed) && (status === '0x0' || status === '0x1');
    if (!isReadable || !LOGS.test(logs) || (blockHash !== undefined && !WORD.test(blockHash))) return null;
    return {
      about: blockHash?.toLowerCase() ?? null,
      says: `${BigInt(blockNumber)} ${status} ${BigInt(gasUsed)}\n${logs}`,
    };
  } catch {
    // A member is missing or of another type.
    return null;
  }
}

/** The receipt by two providers. Null where `readReceipt` is, while not mined, and where no two agree. May reject. */
export async function receiptOf(
  chain: Pick<ChainClient, 'batch'>,
  hash: string,
  options: RpcOptions,
): Promise<TransactionReceipt | null> {
  const calls = [{ method: 'eth_getTransactionReceipt', params: [hash] }];
  const [outcome] = await chain.batch(calls, { ...options, statements: receiptStatements });
  if (!outcome) return null;
  if ('error' in outcome && !(outcome.error instanceof Unconfirmed)) throw outcome.error;
  return 'result' in outcome ? readReceipt(outcome.result, hash) : null;
}

const logsShape = z.array(z.object({ topics: z.array(word), transactionHash: word }));

function endOf({ topics }: Pick<Log, 'topics'>, { from, nonce }: Authorization): boolean {
  return ENDS.includes(topics[0] ?? '') && topics[1] === topicOf(from) && topics[2] === topicOf(nonce);
}

interface EvidenceOptions {
  readonly atBlock?: number;
  readonly rank?: Rank;
}

const ENDS = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];

/**
 * What a mined transaction paid for an authorization, in USDC base units; null for nothing. Each transfer pays for one.
 * With `passedTo`, a `Transfer(to, passedTo, value)` must follow under the same condition.
 */
export function paymentsIn(receipt: TransactionReceipt, usdc: string): (authorization: Authorization) => bigint | null {
  const transfers = new Map<string, Log[]>();
  let under: Log[] = [];
  for (const log of receipt.status === '0x1' ? receipt.logs : []) {
    if (log.address.toLowerCase() !== usdc) continue;
    if (log.topics[0] === AUTHORIZATION_USED) {
      under = [];
      transfers.set(`${log.topics[1]}${log.topics[2]}`, under);
    } else if (log.topics[0] === TRANSFER) under.push(log);
  }
  return (authorization) => {
    const { from, to, nonce, value, passedTo } = authorization;
    const used = transfers.get(`${topicOf(from)}${topicOf(nonce)}`) ?? [];
    const at = used.findIndex((log) => isBetween(log, from, to));
    if (amountOf(used[at]) !== value) return null;
    if (passedTo === undefined) return value;
    const isPassedOn = used.slice(at + 1).some((log) => isBetween(log, to, passedTo) && amountOf(log) === value);
    return isPassedOn ? value : null;
  };
}

function isBetween({ topics }: Log, from: Uint8Array, to: Uint8Array): boolean {
  return topics[1] === topicOf(from) && topics[2] === topicOf(to);
}

/** Null for data of another form. */
function amountOf(transfer: Log | undefined): bigint | null {
  return transfer?.data.length === 66 ? BigInt(transfer.data) : null;
}

function settledBy(receipt: TransactionReceipt, usdc: string, authorization: Authorization): Outcome | null {
  const paid = paymentsIn(receipt, usdc)(authorization);
  if (paid === null) return null;
  const transaction = hexToBytes(receipt.transactionHash);
  return { kind: 'settled', transaction, block: Number(receipt.blockNumber), paid };
}

/** Null without one. The transaction that logs name is a hint: its receipt must show the end. Rejects when all fail. */
function createEndReader(chain: ChainClient, usdc: `0x${string}`) {
  async function findEnd(authorization: Authorization, fromBlock: number, toBlock: number, options: RpcOptions) {
    const topics = [ENDS, topicOf(authorization.from), topicOf(authorization.nonce)];
    for (let start = Math.max(0, fromBlock); start <= toBlock; start += MAX_LOG_SPAN) {
      const range = { fromBlock: toQuantity(start), toBlock: toQuantity(Math.min(toBlock, start + MAX_LOG_SPAN - 1)) };
      const raw = await chain.request('eth_getLogs', [{ address: usdc, topics, ...range }], options);
      const end = parseAnswer(logsShape, raw, 'logs').find((log) => endOf(log, authorization));
      if (end) return end.transactionHash;
    }
    return null;
  }

  return async (authorization: Authorization, fromBlock: number, toBlock: number, rank: Rank) => {
    const failures: unknown[] = [];
    for (let turn = 0; turn < chain.agreed.witnesses; turn++) {
      try {
        const hash = await findEnd(authorization, fromBlock, toBlock, { rank, turn });
        const receipt = hash && (await receiptOf(chain, hash, { rank }));
        if (receipt?.logs.some((log) => log.address === usdc && endOf(log, authorization))) return receipt;
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === chain.agreed.witnesses) throw failures[0];
    return null;
  };
}

/** Reads from the chain how authorizations ended. `usdc` in lower case. */
export function createEvidence(chain: ChainClient, usdc: `0x${string}`) {
  const endReceipt = createEndReader(chain, usdc);

  /**
   * All at one block, `atBlock` or the head: answers at two prove nothing together, as providers differ in height.
   * Unused there: open, or failed if its time is over. Used there: that transaction's receipt shows the payment.
   */
  async function lookup(
    authorization: Authorization,
    fromBlock: number,
    { atBlock, rank = 'settle' }: EvidenceOptions = {},
  ): Promise<Found> {
    const number = atBlock ?? (await chain.agreed.head({ rank }));
    const data = authorizationStateCalldata(authorization.from, authorization.nonce);
    const callsAt = (tag: string) => [{ method: 'eth_call', params: [{ to: usdc, data }, tag] }];
    const read = await readAtBlock(chain, number, callsAt, { rank, isConfirmed: true });
    if (!read) return { kind: 'unknown' };
    const state = BigInt(readOutcome(read.outcomes[0], word, 'authorization state'));
    if (state === 0n) {
      const expired = read.block.timestamp >= authorization.validBefore;
      return expired ? { kind: 'failed', reason: EXPIRED } : { kind: 'open' };
    }
    const receipt = await endReceipt(authorization, fromBlock, number, rank);
    if (!receipt) return { kind: 'unknown' };
    return settledBy(receipt, usdc, authorization) ?? { kind: 'failed', reason: NONCE_USED };
  }

  /** `settled` where a named transaction is mined and paid; null proves nothing. Saves three of a search's requests. */
  async function paidIn(authorization: Authorization, transaction: `0x${string}`): Promise<Outcome | null> {
    const receipt = await receiptOf(chain, transaction, { rank: 'settle' });
    return receipt && settledBy(receipt, usdc, authorization);
  }

  return { lookup, paidIn };
}

export type Evidence = ReturnType<typeof createEvidence>;
