import { x402Client } from '@x402/core/client';
import { toClientEvmSigner } from '@x402/evm';
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { arc } from 'viem/chains';
import { createAccount, type EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { newBuyer } from '../usdc/buyer.ts';

/** A service that offers channels, with claims and looks at the chain in quick succession. */
export const channelEnv = (minDepositUsdc: string): Record<string, string> => ({
  CHANNELS: 'on',
  CHANNELS_AUTHORIZER_KEY: createAccount().privateKey,
  CHANNELS_MIN_DEPOSIT_USDC: minDepositUsdc,
  RECONCILE_INTERVAL_MS: '200',
  RECEIPT_POLL_MS: '50',
});

/** What a 402 or a receipt shows of a channel, as far as the tests look. */
export interface ShownChannel {
  readonly chargedCumulativeAmount: string;
  readonly totalClaimed: string;
  readonly balance: string;
  readonly channelId: string;
}
/** One answer that a client got: its status, the error and the channel that its 402 told, and the receipt. */
export interface Exchange {
  readonly status: number;
  readonly error: string | null;
  readonly told: { channelState?: ShownChannel; voucherState?: object } | null;
  readonly receipt: Receipt | null;
}
export interface Receipt {
  readonly transaction: string;
  readonly amount: string;
  readonly extra: { chargedAmount: string; channelState: ShownChannel };
}

const header = (answer: Response, name: string) => {
  const value = answer.headers.get(name);
  return value === null ? null : JSON.parse(atob(value));
};
/** The receipt of a paid answer. */
export const receiptOf = (answer: Response): Receipt => header(answer, 'payment-response');

/** A payer with USDC and a key, and stock clients of @x402/evm that pay with it. */
export async function newStockBuyer(network: EmbeddedNetwork, units = 1_000_000n) {
  const { address, privateKey } = await newBuyer(network, units);
  const account = privateKeyToAccount(bytesToHex(privateKey));
  const chain = createPublicClient({ chain: arc, transport: http(network.rpcUrl) });

  /** A client with a store of its own, as on another device. With `reads`, it can read the chain. `seen` has every answer in its order. */
  function open({ reads = true, salt }: { reads?: boolean; salt?: `0x${string}` } = {}) {
    const seen: Exchange[] = [];
    let isNextLost = false;
    const recorded: typeof fetch = async (...request) => {
      const isPaid = new Request(...request).headers.has('payment-signature');
      const answer = await fetch(...request);
      if (isPaid && isNextLost) {
        isNextLost = false;
        throw new TypeError('the answer is lost');
      }
      const required = header(answer, 'payment-required');
      const entry = required?.accepts.find(({ scheme: name }: { scheme: string }) => name === 'batch-settlement');
      const { status } = answer;
      seen.push({ status, error: required?.error ?? null, told: entry?.extra ?? null, receipt: receiptOf(answer) });
      return answer;
    };
    const scheme = new BatchSettlementEvmScheme(reads ? toClientEvmSigner(account, chain) : account, {
      ...(salt && { salt }),
    });
    const allowed = [{ network: 'eip155:5042' as const, asset: network.usdc }];
    const client = new x402Client().register('eip155:5042', scheme).setSpendControls({ allowedAssets: allowed });
    /** Lets the client lose its next paid answer: the service sends it, and the connection breaks. */
    const loseNext = (): void => {
      isNextLost = true;
    };
    return { scheme, seen, loseNext, pay: wrapFetchWithPayment(recorded, client) };
  }

  return { address, privateKey, account, open };
}
