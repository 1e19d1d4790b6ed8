import { type Hex, keccak256, parseTransaction } from 'viem';
import { bytesToHex } from '../../../src/lib/hex.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import type { TransactionReceipt } from '../../../src/payment/usdc/evidence.ts';
import { MULTICALL3, transferCalldata } from '../../../src/payment/usdc/token.ts';
import { paidReceipt, type TokenNode } from './token-node.ts';

/** One transaction as it was sent to the node. */
export interface Sent {
  readonly hash: Hex;
  readonly raw: Hex;
  readonly to: string;
  readonly nonce: number;
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
}

/**
 * A mempool over a token node. It keeps what is sent. A transaction is mined when the test mines it. Each send counts, also of the same transaction.
 */
export function addMempool({ server, end }: TokenNode) {
  const sent: Sent[] = [];
  const receipts = new Map<string, TransactionReceipt>();
  let waiting: { count: number; tell: () => void }[] = [];
  let mined = 0;

  server.methods.eth_getTransactionCount = () => `0x${mined.toString(16)}`;
  server.methods.eth_getTransactionReceipt = ([hash]) => receipts.get(String(hash)) ?? null;
  server.methods.eth_sendRawTransaction = ([raw]) => {
    const { to, nonce = 0, gas = 0n, maxFeePerGas = 0n } = parseTransaction(raw as Hex);
    sent.push({ hash: keccak256(raw as Hex), raw: raw as Hex, to: String(to), nonce, gas, maxFeePerGas });
    for (const { tell } of waiting.filter(({ count }) => count <= sent.length)) tell();
    waiting = waiting.filter(({ count }) => count > sent.length);
    return sent.at(-1)?.hash;
  };

  return {
    sent,
    /** Resolves once `count` transactions were sent since the start. Returns the last of them. */
    async arrived(count: number): Promise<Sent> {
      if (sent.length < count) await new Promise<void>((tell) => waiting.push({ count, tell }));
      return sent[count - 1] as Sent;
    },
    /** A third party's transaction uses the next nonce. */
    use: (): void => void mined++,
    /** Mines a transaction that pays for these authorizations, with `changes` in its receipt. */
    mine(
      { hash, nonce }: Sent,
      paid: readonly Authorization[],
      changes: Partial<TransactionReceipt> = {},
    ): TransactionReceipt {
      mined = Math.max(mined, nonce + 1);
      const receipt = paidReceipt(paid, { transactionHash: hash, ...changes });
      receipts.set(hash, receipt);
      for (const authorization of paid) end(authorization, receipt);
      return receipt;
    },
  };
}

/** Whether a transaction settles this authorization, alone or with others. */
export function settles({ raw, to }: Sent, authorization: Authorization, usdc: string): boolean {
  if (to !== usdc && to !== MULTICALL3) return false;
  return (
    raw.includes(transferCalldata(authorization).slice(2)) || raw.includes(bytesToHex(authorization.nonce).slice(2))
  );
}
