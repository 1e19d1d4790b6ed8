import { z } from 'zod';
import { MAX_LOG_SPAN } from '../../chain/block-logs.ts';
import type { RpcOptions } from '../../chain/rpc/call.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { Rank } from '../../chain/rpc/rank.ts';
import { account, data, index, parseAnswer, quantity, toQuantity, word } from '../../chain/rpc/wire.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import { EXPIRED, type Found, NONCE_USED, type Outcome } from '../settler.ts';
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, authorizationStateCalldata, TRANSFER } from './token.ts';

interface Log {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** A mined transaction's receipt, as `eth_getTransactionReceipt` gives it. */
export interface Receipt {
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly effectiveGasPrice?: string | undefined;
  readonly logs: readonly Log[];
}

const number = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const receiptShape = z.object({
  ...{ transactionHash: word, blockNumber: number, gasUsed: number, status: z.enum(['0x0', '0x1']) },
  effectiveGasPrice: number.optional(),
  logs: z.array(z.object({ address: account, topics: z.array(word), data })),
});

/**
 * Reads a node's answer as the receipt of this transaction. Null for any other answer and for another transaction's receipt, because they prove
 * nothing.
 */
export function readReceipt(raw: unknown, hash: string): Receipt | null {
  const parsed = receiptShape.safeParse(raw);
  return parsed.success && parsed.data.transactionHash === hash.toLowerCase() ? parsed.data : null;
}

/** Asks a node for the receipt of this transaction. Null where `readReceipt` is, so also while it is not mined. Rejects as the client's `request` does. */
export async function receiptOf(
  chain: Pick<ChainClient, 'request'>,
  hash: string,
  options: RpcOptions,
): Promise<Receipt | null> {
  return readReceipt(await chain.request('eth_getTransactionReceipt', [hash], options), hash);
}

const headerShape = z.object({ number: index, timestamp: quantity }).nullable();
const logsShape = z.array(z.object({ topics: z.array(word), transactionHash: word }));

/** Whether a log records this authorization's use or cancellation. */
function endOf({ topics }: Pick<Log, 'topics'>, { from, nonce }: Authorization): boolean {
  return ENDS.includes(topics[0] ?? '') && topics[1] === topic(from) && topics[2] === topic(nonce);
}

/** The block to read at (by default the head), and the rank of the requests. */
interface LookupOptions {
  readonly atBlock?: number;
  readonly rank?: Rank;
}

/** The two events that end an authorization. */
const ENDS = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];

const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;

/**
 * Returns what a mined transaction paid for an authorization, in USDC base units. Null when it did not pay. It paid when it holds
 * `AuthorizationUsed(from, nonce)` followed, before any other `AuthorizationUsed`, by the token's own `Transfer(from, to, value)`. So each transfer
 * pays for one authorization. Where the authorization says `passedTo`, a `Transfer(to, passedTo, value)` must follow that one, under the same condition.
 * The logs are read once, for any number of authorizations.
 */
export function paymentsIn(receipt: Receipt, usdc: string): (authorization: Authorization) => bigint | null {
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
    const used = transfers.get(`${topic(from)}${topic(nonce)}`) ?? [];
    const at = used.findIndex((log) => isBetween(log, from, to));
    if (amountOf(used[at]) !== value) return null;
    if (passedTo === undefined) return value;
    const isPassedOn = used.slice(at + 1).some((log) => isBetween(log, to, passedTo) && amountOf(log) === value);
    return isPassedOn ? value : null;
  };
}

function isBetween({ topics }: Log, from: Uint8Array, to: Uint8Array): boolean {
  return topics[1] === topic(from) && topics[2] === topic(to);
}

/** The amount of a transfer's log; null for data of another form. */
function amountOf(transfer: Log | undefined): bigint | null {
  return transfer?.data.length === 66 ? BigInt(transfer.data) : null;
}

/** Settled, when a mined transaction paid for the authorization; else null. */
function settledBy(receipt: Receipt, usdc: string, authorization: Authorization): Outcome | null {
  const paid = paymentsIn(receipt, usdc)(authorization);
  if (paid === null) return null;
  const transaction = hexToBytes(receipt.transactionHash);
  return { kind: 'settled', transaction, block: Number(receipt.blockNumber), paid };
}

/** Reads from the chain how authorizations ended, also those that a third party sent. `usdc` in lower case. */
export function createEvidence(chain: ChainClient, usdc: `0x${string}`) {
  async function findEnd(authorization: Authorization, fromBlock: number, toBlock: number, rank: Rank) {
    const topics = [ENDS, topic(authorization.from), topic(authorization.nonce)];
    for (let start = Math.max(0, fromBlock); start <= toBlock; start += MAX_LOG_SPAN) {
      const range = { fromBlock: toQuantity(start), toBlock: toQuantity(Math.min(toBlock, start + MAX_LOG_SPAN - 1)) };
      const raw = await chain.request('eth_getLogs', [{ address: usdc, topics, ...range }], { rank });
      const logs = parseAnswer(logsShape, raw, 'logs');
      const end = logs.find((log) => endOf(log, authorization));
      if (end) return end;
    }
    return null;
  }

  /**
   * 1. Chooses a block: `atBlock`, which is known to be mined, or the head. Everything is read at that block. Providers differ in height, so answers
   *    at two blocks prove nothing together.
   * 2. Unused at that block: open. Failed if the block's time is past `validBefore`.
   * 3. Used at that block: finds the use or the cancellation in the logs up to it. The transaction's receipt shows the payment.
   */
  async function lookup(
    authorization: Authorization,
    fromBlock: number,
    { atBlock, rank = 'settle' }: LookupOptions = {},
  ): Promise<Found> {
    const tag = atBlock === undefined ? 'latest' : toQuantity(atBlock);
    const newest = await chain.request('eth_getBlockByNumber', [tag, false], { rank });
    const header = parseAnswer(headerShape, newest, 'block header');
    if (!header || (atBlock !== undefined && header.number !== atBlock)) return { kind: 'unknown' };
    const call = { to: usdc, data: authorizationStateCalldata(authorization.from, authorization.nonce) };
    const answer = await chain.request('eth_call', [call, toQuantity(header.number)], { rank });
    const state = BigInt(parseAnswer(word, answer, 'authorization state'));
    if (state === 0n) {
      const expired = header.timestamp >= authorization.validBefore;
      return expired ? { kind: 'failed', reason: EXPIRED } : { kind: 'open' };
    }
    const end = await findEnd(authorization, fromBlock, header.number, rank);
    if (!end) return { kind: 'unknown' };
    const receipt = await receiptOf(chain, end.transactionHash, { rank });
    const holdsIt = receipt?.logs.some((log) => log.address === usdc && endOf(log, authorization));
    if (!receipt || !holdsIt) return { kind: 'unknown' };
    return settledBy(receipt, usdc, authorization) ?? { kind: 'failed', reason: NONCE_USED };
  }

  /**
   * Checks a transaction that a third party has named. Returns `settled` when it is mined and paid for the authorization. Null otherwise, which
   * proves nothing. This takes one request, and a search takes four.
   */
  async function paidIn(authorization: Authorization, transaction: `0x${string}`): Promise<Outcome | null> {
    const receipt = await receiptOf(chain, transaction, { rank: 'settle' });
    return receipt && settledBy(receipt, usdc, authorization);
  }

  return { lookup, paidIn };
}

export type Evidence = ReturnType<typeof createEvidence>;
