import { setTimeout as delay } from 'node:timers/promises';
import { type Abi, createWalletClient, http, parseEventLogs } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { arc } from 'viem/chains';
import { expect } from 'vitest';
import { artifacts } from '../../../src/embedded/contracts/artifacts.ts';
import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../src/payment/rails/usdc-channels/scheme.ts';
import { call } from '../service/service.ts';
import { until } from '../service/workers.ts';
import { balanceOf, decoded } from '../usdc/buyer.ts';
import type { KillBuyer } from './kill-buyer.ts';

/** How long a refund's end may take, in ms. */
const END_MS = 60_000;
const PATH = '/v1/paid/fees/estimate';
const abi = artifacts.BatchSettlement.abi as Abi;

type Log = { topics: [`0x${string}`, ...`0x${string}`[]]; data: `0x${string}` };

/** The amounts that the settlement contract's events of one name show for a channel, in their order. Base units. */
export async function eventsOf(
  network: EmbeddedNetwork,
  name: 'Deposited' | 'Refunded',
  id: string,
): Promise<bigint[]> {
  const filter = { address: SETTLEMENT, topics: [null, id], fromBlock: '0x0', toBlock: 'latest' };
  const raw = await network.rpc<Log[]>('eth_getLogs', [filter]);
  const logs = parseEventLogs({ abi, logs: raw as never }) as unknown as {
    eventName: string;
    args: { amount: bigint };
  }[];
  return logs.filter(({ eventName }) => eventName === name).map(({ args }) => args.amount);
}

/** What the contract has recorded as claimed from a channel, in base units. */
export async function claimedOf(network: EmbeddedNetwork, id: string): Promise<bigint> {
  // channels(bytes32) returns the balance and the recorded claims.
  const data = await network.rpc<string>('eth_call', [{ to: SETTLEMENT, data: `0x7a7ebd7b${id.slice(2)}` }, 'latest']);
  return BigInt(`0x${data.slice(66)}`);
}

/** A buyer that takes its money back: by our refund, or by the withdrawal that needs no service. */
export async function createLeaver(
  network: EmbeddedNetwork,
  origin: string,
  buyer: KillBuyer,
  kind: 'refund' | 'withdrawal',
) {
  const { charged, deposited } = buyer.told();
  const account = privateKeyToAccount(bytesToHex(buyer.privateKey));
  await network.fundNative(account.address, 10n ** 18n);
  const wallet = createWalletClient({ account, chain: arc, transport: http(network.rpcUrl) });
  const { withdrawDelay, ...bytes } = buyer.signer.config;
  const texts = Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, bytesToHex(value)]));
  const config = { ...texts, withdrawDelay };

  const write = async (functionName: string, args: readonly unknown[]): Promise<void> => {
    const hash = await wallet.writeContract({ address: SETTLEMENT, abi, functionName, args });
    await until(`${functionName} is mined`, async () => {
      const receipt = await network.rpc<{ status: string } | null>('eth_getTransactionReceipt', [hash]);
      if (receipt) expect(receipt.status, functionName).toBe('0x1');
      return receipt !== null;
    });
  };
  const askRefund = () =>
    call(origin, PATH, { headers: { 'payment-signature': buyer.signer.refund(charged) } }).catch(() => null);

  /** Asks again until the refund is paid, or until nothing is left to refund. */
  async function finishRefund(context: string): Promise<void> {
    const deadline = Date.now() + END_MS;
    for (;;) {
      const answer = await askRefund();
      const error = answer?.status === 402 ? String(decoded(answer, 'payment-required').error) : '';
      if (answer?.status === 200 || error.endsWith('refund_no_balance')) break;
      expect(Date.now(), `${context}: ${answer?.status} ${answer?.body} ${error}`).toBeLessThan(deadline);
      await delay(100);
    }
    expect(await eventsOf(network, 'Refunded', buyer.id), context).toEqual([deposited - charged]);
    expect(await balanceOf(network, buyer.address), context).toBe(buyer.funds - charged);
  }

  /**
   * Asks to withdraw everything that is not claimed yet, charged amounts included. A claim that is mined meanwhile makes the contract refuse that
   * once.
   */
  async function withdrawAll(): Promise<void> {
    const rest = deposited - (await claimedOf(network, buyer.id));
    await write('initiateWithdraw', [config, rest]).catch(async () =>
      write('initiateWithdraw', [config, deposited - (await claimedOf(network, buyer.id))]),
    );
  }

  return {
    ...{ buyer, kind },
    /** Asks for the money. A refund's answer may be lost. */
    leave: async (): Promise<void> => {
      if (kind === 'refund') await askRefund();
      else await withdrawAll();
    },
    /** Waits for the refund, or until all charges are claimed while the withdrawal is pending. */
    finish: async (context: string): Promise<void> => {
      if (kind === 'refund') return finishRefund(context);
      await until(`the charges are claimed, ${context}`, async () => (await claimedOf(network, buyer.id)) === charged);
    },
    /** Takes the rest after the delay. The charges stay claimed. */
    takeRest: async (context: string): Promise<void> => {
      if (kind === 'withdrawal') await write('finalizeWithdraw', [config]);
      expect(await balanceOf(network, buyer.address), context).toBe(buyer.funds - charged);
    },
  };
}

export type Leaver = Awaited<ReturnType<typeof createLeaver>>;
