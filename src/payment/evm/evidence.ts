import { z } from 'zod';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { Rank } from '../../chain/rpc/rank.ts';
import { account, data, index, parseAnswer, quantity, toQuantity, word } from '../../chain/rpc/wire.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Authorization } from '../authorization.ts';
import { NONCE_USED, type Outcome, type Verdict } from '../settler.ts';
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

/** A node's answer as the receipt of this transaction; null when it is none, or another's: such an answer proves nothing. */
export function readReceipt(raw: unknown, hash: string): Receipt | null {
  const parsed = receiptShape.safeParse(raw);
  return parsed.success && parsed.data.transactionHash === hash.toLowerCase() ? parsed.data : null;
}

const headerShape = z.object({ number: index, timestamp: quantity }).nullable();
const logsShape = z.array(z.object({ topics: z.array(word), transactionHash: word }));

/** Whether a log tells of this authorization's use or cancellation. */
function endOf({ topics }: Pick<Log, 'topics'>, { from, nonce }: Authorization): boolean {
  return ENDS.includes(topics[0] ?? '') && topics[1] === topic(from) && topics[2] === topic(nonce);
}

/** Which block to read at, the head by default, and how important the answer is. */
interface LookupOptions {
  readonly atBlock?: number;
  readonly rank?: Rank;
}

/** Public nodes refuse `eth_getLogs` over 10,000 blocks and more. */
const LOG_SPAN = 9_999;

/** The two ways in which an authorization comes to its end. */
const ENDS = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];

const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;

/**
 * What a mined transaction paid for an authorization, in USDC base units; null where it did not pay for it. It did where it holds
 * `AuthorizationUsed(from, nonce)` followed, before any other `AuthorizationUsed`, by the token's own `Transfer(from, to, value)`. So each
 * transfer pays for one authorization. The logs are read once, for any number of authorizations.
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
    const [from, to] = [topic(authorization.from), topic(authorization.to)];
    const used = transfers.get(`${from}${topic(authorization.nonce)}`) ?? [];
    const transfer = used.find(({ topics }) => topics[1] === from && topics[2] === to);
    if (transfer?.data.length !== 66) return null;
    const paid = BigInt(transfer.data);
    return paid === authorization.value ? paid : null;
  };
}

/** Settled, where a mined transaction paid for the authorization; else null. */
function settledBy(receipt: Receipt, usdc: string, authorization: Authorization): Outcome | null {
  const paid = paymentsIn(receipt, usdc)(authorization);
  if (paid === null) return null;
  const transaction = hexToBytes(receipt.transactionHash);
  return { kind: 'settled', transaction, block: Number(receipt.blockNumber), paid };
}

/** Reads what became of authorizations from the chain, whoever sent the transaction. `usdc` in lower case. */
export function createEvidence(chain: ChainClient, usdc: `0x${string}`) {
  async function findEnd(authorization: Authorization, fromBlock: number, toBlock: number, rank: Rank) {
    const topics = [ENDS, topic(authorization.from), topic(authorization.nonce)];
    for (let start = Math.max(0, fromBlock); start <= toBlock; start += LOG_SPAN) {
      const range = { fromBlock: toQuantity(start), toBlock: toQuantity(Math.min(toBlock, start + LOG_SPAN - 1)) };
      const raw = await chain.request('eth_getLogs', [{ address: usdc, topics, ...range }], { rank });
      const logs = parseAnswer(logsShape, raw, 'logs');
      const end = logs.find((log) => endOf(log, authorization));
      if (end) return end;
    }
    return null;
  }

  /**
   * 1. A block is chosen: `atBlock`, known to be mined, or the head. Everything is read at it, because providers differ in height
   *    and two answers of two of them prove nothing together.
   * 2. Unused there: open, or failed when that block is past `validBefore`.
   * 3. Used there: the logs up to it hold the use or the cancellation; its receipt tells.
   */
  async function lookup(
    authorization: Authorization,
    fromBlock: number,
    { atBlock, rank = 'settle' }: LookupOptions = {},
  ): Promise<Verdict> {
    const tag = atBlock === undefined ? 'latest' : toQuantity(atBlock);
    const newest = await chain.request('eth_getBlockByNumber', [tag, false], { rank });
    const header = parseAnswer(headerShape, newest, 'block header');
    if (!header || (atBlock !== undefined && header.number !== atBlock)) return { kind: 'unknown' };
    const call = { to: usdc, data: authorizationStateCalldata(authorization.from, authorization.nonce) };
    const answer = await chain.request('eth_call', [call, toQuantity(header.number)], { rank });
    const state = BigInt(parseAnswer(word, answer, 'authorization state'));
    if (state === 0n) {
      const expired = header.timestamp >= authorization.validBefore;
      return expired
        ? { kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
        : { kind: 'open' };
    }
    const end = await findEnd(authorization, fromBlock, header.number, rank);
    if (!end) return { kind: 'unknown' };
    const found = await chain.request('eth_getTransactionReceipt', [end.transactionHash], { rank });
    const receipt = readReceipt(found, end.transactionHash);
    const holdsIt = receipt?.logs.some((log) => log.address === usdc && endOf(log, authorization));
    if (!receipt || !holdsIt) return { kind: 'unknown' };
    return settledBy(receipt, usdc, authorization) ?? { kind: 'failed', reason: NONCE_USED };
  }

  /**
   * Settled where this transaction, which somebody has named, is mined and paid for the authorization; null where it does not show that, which
   * proves nothing. One request, in place of the four of a search.
   */
  async function paidIn(authorization: Authorization, transaction: `0x${string}`): Promise<Outcome | null> {
    const found = await chain.request('eth_getTransactionReceipt', [transaction], { rank: 'settle' });
    const receipt = readReceipt(found, transaction);
    return receipt && settledBy(receipt, usdc, authorization);
  }

  return { lookup, paidIn };
}

export type Evidence = ReturnType<typeof createEvidence>;
