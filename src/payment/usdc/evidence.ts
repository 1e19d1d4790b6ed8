import type { ChainClient } from '../../chain/client.ts';
import { toQuantity } from '../../chain/wire.ts';
import { hexToBytes } from '../../lib/hex.ts';
import type { Authorization } from './authorization.ts';
import type { Outcome } from './settler.ts';
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
  readonly effectiveGasPrice?: string;
  readonly logs: readonly Log[];
}

/** What the chain says of an authorization: ended, still `open` to be used, or not to be told now. */
export type Verdict = Outcome | { readonly kind: 'open' };

/** Public nodes refuse `eth_getLogs` over 10,000 blocks and more. */
const LOG_SPAN = 9_999;

const topic = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;

/**
 * Whether a mined transaction paid an authorization: it holds `AuthorizationUsed(from, nonce)` followed, before any other
 * `AuthorizationUsed`, by the token's own `Transfer(from, to, value)`. So each transfer pays for one authorization.
 */
export function paysFor(receipt: Receipt, usdc: string, authorization: Authorization): boolean {
  return paymentsIn(receipt, usdc)(authorization);
}

/** The same for many authorizations of one transaction: its logs are read once. */
export function paymentsIn(receipt: Receipt, usdc: string): (authorization: Authorization) => boolean {
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
    const paid = used.find(({ topics }) => topics[1] === from && topics[2] === to);
    return paid !== undefined && paid.data.length === 66 && BigInt(paid.data) === authorization.value;
  };
}

/** Reads what became of authorizations from the chain, whoever sent the transaction. `usdc` in lower case. */
export function createEvidence(chain: ChainClient, usdc: `0x${string}`) {
  async function findEnd(authorization: Authorization, fromBlock: number, toBlock: number) {
    const topics = [
      [AUTHORIZATION_USED, AUTHORIZATION_CANCELED],
      topic(authorization.from),
      topic(authorization.nonce),
    ];
    for (let start = Math.max(0, fromBlock); start <= toBlock; start += LOG_SPAN) {
      const range = { fromBlock: toQuantity(start), toBlock: toQuantity(Math.min(toBlock, start + LOG_SPAN - 1)) };
      const logs = await chain.request<(Log & { transactionHash: string })[]>('eth_getLogs', [
        { address: usdc, topics, ...range },
      ]);
      if (logs[0]) return logs[0];
    }
    return null;
  }

  /**
   * 1. A block is chosen: `atBlock`, known to be mined, or the head. Everything is read at it, because providers differ in height
   *    and two answers of two of them prove nothing together.
   * 2. Unused there: open, or failed when that block is past `validBefore`.
   * 3. Used there: the logs up to it hold the use or the cancellation; its receipt tells.
   */
  async function lookup(authorization: Authorization, fromBlock: number, atBlock?: number): Promise<Verdict> {
    const tag = atBlock === undefined ? 'latest' : toQuantity(atBlock);
    const header = await chain.request<{ number: string; timestamp: string } | null>('eth_getBlockByNumber', [
      tag,
      false,
    ]);
    if (!header) return { kind: 'unknown' };
    const call = { to: usdc, data: authorizationStateCalldata(authorization.from, authorization.nonce) };
    const state = BigInt(await chain.request<string>('eth_call', [call, header.number]));
    if (state === 0n) {
      const expired = BigInt(header.timestamp) >= authorization.validBefore;
      return expired
        ? { kind: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
        : { kind: 'open' };
    }
    const end = await findEnd(authorization, fromBlock, Number(header.number));
    if (!end) return { kind: 'unknown' };
    const receipt = await chain.request<Receipt | null>('eth_getTransactionReceipt', [end.transactionHash]);
    if (!receipt) return { kind: 'unknown' };
    if (!paysFor(receipt, usdc, authorization))
      return { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' };
    return { kind: 'settled', transaction: hexToBytes(receipt.transactionHash), block: Number(receipt.blockNumber) };
  }

  return { lookup };
}

export type Evidence = ReturnType<typeof createEvidence>;
