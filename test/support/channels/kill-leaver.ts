import { setTimeout as delay } from 'node:timers/promises';
import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { arcWithRoom } from '../chain/arc-with-room.ts';
import { call } from '../service/service.ts';
import { until } from '../service/workers.ts';
import { balanceOf, decoded } from '../usdc/buyer.ts';
import { abi, claimedOf, eventsOf, withdrawingSince } from './chain-view.ts';
import type { KillBuyer } from './kill-buyer.ts';

/** How long a refund's end may take, in ms. */
const END_MS = 120_000;
/** How often a withdrawal may meet a claim. The payer buys nothing meanwhile, so few claims can still come. */
const MOST_CLAIMS = 5;

export type Way = 'refund' | 'withdrawal';

/** A buyer that takes its money back: by our refund, or by the withdrawal that needs no service. */
export async function createLeaver(network: EmbeddedNetwork, origin: string, buyer: KillBuyer, kind: Way) {
  const { charged, deposited } = buyer.told();
  const account = privateKeyToAccount(bytesToHex(buyer.privateKey));
  await network.fundNative(account.address, 10n ** 18n);
  const wallet = createWalletClient({ account, chain: arcWithRoom, transport: http(network.rpcUrl) });
  const { withdrawDelay, ...bytes } = buyer.signer.config;
  const texts = Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, bytesToHex(value)]));
  const config = { ...texts, withdrawDelay };
  let met = 0;

  const write = async (functionName: string, args: readonly unknown[]): Promise<void> => {
    const hash = await wallet.writeContract({ address: SETTLEMENT, abi, functionName, args });
    await until(`${functionName} is mined`, async () => {
      const receipt = await network.rpc<{ status: string } | null>('eth_getTransactionReceipt', [hash]);
      if (receipt) expect(receipt.status, functionName).toBe('0x1');
      return receipt !== null;
    });
  };
  const unclaimed = async (): Promise<bigint> => deposited - (await claimedOf(network, buyer.id));
  const askRefund = () =>
    call(origin, buyer.path(), { headers: { 'payment-signature': buyer.signer.refund(charged) } }).catch(() => null);

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
   * Asks to withdraw everything that is not claimed yet, what is charged too. A claim that is pending at the reading lowers what is left, and the contract
   * refuses the request (`WithdrawAmountExceedsAvailable`). Then the payer waits until the claim is mined, reads again and asks again.
   */
  async function withdrawAll(): Promise<void> {
    for (;;) {
      const rest = await unclaimed();
      try {
        return await write('initiateWithdraw', [config, rest]);
      } catch (error) {
        await until('the claim is mined that the withdrawal met', async () => (await unclaimed()) !== rest).catch(
          () => {
            throw error;
          },
        );
        expect(++met, 'claims that one withdrawal met').toBeLessThan(MOST_CLAIMS);
      }
    }
  }

  /** The delay has not ended when the last charge is claimed: the payer could not have taken it. */
  async function finishWithdrawal(context: string): Promise<void> {
    await until(
      `the charges are claimed before the withdrawal ends, ${context}`,
      async () => (await claimedOf(network, buyer.id)) === charged,
    );
    const since = await withdrawingSince(network, buyer.id);
    const { timestamp } = await network.rpc<{ timestamp: string }>('eth_getBlockByNumber', ['latest', false]);
    expect(since, context).toBeGreaterThan(0);
    expect(Number(timestamp), context).toBeLessThan(since + withdrawDelay);
  }

  return {
    buyer,
    kind,
    /** How many claims lowered what was left while the payer asked. */
    met: () => met,
    /** Asks for the money. A refund's answer may be lost. */
    leave: async (): Promise<void> => {
      if (kind === 'refund') await askRefund();
      else await withdrawAll();
    },
    /** Waits for the refund, or until all charges are claimed while the withdrawal is pending. */
    finish: (context: string): Promise<void> => (kind === 'refund' ? finishRefund(context) : finishWithdrawal(context)),
    /** Takes the rest after the delay. The charges stay claimed. */
    takeRest: async (context: string): Promise<void> => {
      if (kind === 'withdrawal') await write('finalizeWithdraw', [config]);
      expect(await balanceOf(network, buyer.address), context).toBe(buyer.funds - charged);
    },
  };
}

export type Leaver = Awaited<ReturnType<typeof createLeaver>>;
