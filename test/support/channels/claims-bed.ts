import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { privateKeyToAccount } from 'viem/accounts';
import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { systemClock as clock } from '../../../src/lib/clock.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { createChannelReader } from '../../../src/payment/channels/channel.ts';
import { voucherSale } from '../ledger/channel-rows.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';
import { openChainRelayer } from '../usdc/chain-relayer.ts';
import { type ChainChannel, createChainChannels } from './chain-channels.ts';
import type { createChannelStage } from './channel-contract.ts';

export const NETWORK = 'eip155:5042';
/** What each funded channel holds: 1 USDC. */
export const DEPOSIT = 1_000_000n;

/** Channels over a real ledger on disk, the real relayer, and the contract on a real node. */
export async function openClaimsBed(network: EmbeddedNetwork, stage: ReturnType<typeof createChannelStage>) {
  const channels = createChainChannels(network, { withdrawDelay: 900 });
  const bed = await openChainRelayer(network);
  const folder = mkdtempSync(join(tmpdir(), 'claims-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  const store = storesOf(db).channels;
  const reader = createChannelReader(bed.chain);

  const noted = async ({ id }: ChainChannel) => {
    const found = await store.get(id);
    if (!found) throw new Error('the channel is not in the ledger');
    return found;
  };
  async function note({ id, config }: ChainChannel): Promise<void> {
    const [state] = await reader.read([id]);
    if (state) await store.note({ ...config, id, network: NETWORK }, state, clock.nowMs());
  }
  const structOf = ({ config }: ChainChannel) =>
    Object.fromEntries(
      Object.entries(config).map(([name, value]) => [name, value instanceof Uint8Array ? bytesToHex(value) : value]),
    );
  const payerOf = ({ privateKey }: ChainChannel) => stage.walletOf(privateKeyToAccount(bytesToHex(privateKey)));

  return {
    ...bed,
    channels,
    store,
    reader,
    noted,
    note,
    /** What the contract has recorded as claimed from a channel. */
    recorded: async (channel: ChainChannel) => (await reader.read([channel.id]))[0]?.totalClaimed,
    /** What the receiver holds. */
    earned: () => stage.usdcOf(bytesToHex(channels.receiver)),
    /** Channels with a deposit, known to the ledger. */
    async funded(count: number): Promise<ChainChannel[]> {
      const opened = await Promise.all(Array.from({ length: count }, () => channels.open(DEPOSIT)));
      const outcomes = await Promise.all(bed.relayer.settle(opened.map((channel) => channel.deposit(DEPOSIT))));
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['settled']));
      for (const channel of opened) await note(channel);
      bed.mined.length = 0;
      return opened;
    },
    /** Charges a channel by one voucher up to `max`. */
    async charge(channel: ChainChannel, max: bigint, signature = channel.signVoucher(max)): Promise<void> {
      const { charged } = await noted(channel);
      const price = max - charged;
      const id = randomUUID();
      const sale = { ...voucherSale(id, id, max, { price, amount: price }), reservedAt: clock.nowMs() };
      const paid = { ...sale, channel: { channelId: channel.id, max, signature } };
      expect(await store.charge(paid, new Uint8Array(), 0)).not.toBeNull();
    },
    /** The ledger's sums, which must agree to the unit. */
    async reconciled(): Promise<{ charged: bigint; claimed: bigint; writtenOff: bigint; claimable: bigint }> {
      const totals = await store.totals(NETWORK);
      const unclaimed = await store.listUnclaimed(NETWORK, 1000);
      const claimable = unclaimed.reduce(
        (sum, { charged, writtenOff, state }) => sum + charged - writtenOff - state.totalClaimed,
        0n,
      );
      expect(totals.charged).toBe(totals.claimed + totals.writtenOff + claimable);
      return { ...totals, claimable };
    },
    /** The payer asks the contract for this amount back. */
    withdraw: async (channel: ChainChannel, amount: bigint) =>
      stage.call('initiateWithdraw', [structOf(channel), amount], await payerOf(channel)),
    finalizeWithdraw: async (channel: ChainChannel) =>
      stage.call('finalizeWithdraw', [structOf(channel)], await payerOf(channel)),
    async close(): Promise<void> {
      await bed.close();
      db.close();
      rmSync(folder, { recursive: true });
    },
  };
}
