import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { createWithdrawalAlarms } from '../../../../../src/payment/channels/claim-health.ts';
import { SETTLEMENT } from '../../../../../src/payment/channels/scheme.ts';
import { createWithdrawalWatch } from '../../../../../src/payment/channels/withdrawals.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { depositSale, NETWORK, settleDeposit } from '../../../../support/ledger/channel-rows.ts';

const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
/** The channels of each read, with its rank. */
let reads: [ids: number, rank: unknown][];
/** The block of each read. */
let readAt: number[];
let watch: ReturnType<typeof createWithdrawalWatch>;
let alarms: ReturnType<typeof createWithdrawalAlarms>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  [reads, readAt] = [[], []];
  alarms = createWithdrawalAlarms(bed.clock);
  watch = open();
});
afterEach(() => bed.close());

function open(store: typeof bed.store = bed.store, answers = (ids: readonly Uint8Array[]) => ids) {
  const { chain, clock, log, reader } = bed;
  return createWithdrawalWatch({
    store,
    chain,
    clock,
    log,
    network: NETWORK,
    withdrawDelaySeconds: 1200,
    alarms,
    reader: {
      ...reader,
      readEach: (ids, block, rank) => {
        reads.push([ids.length, rank]);
        readAt.push(block);
        return reader.readEach(answers(ids), block, rank);
      },
    },
  });
}

/** The payer asks the contract for this amount. */
function withdraw(of: UnitChannel, amount: bigint) {
  bed.contract.put(of.id, { withdrawAmount: amount, withdrawAt: 1_800_000_000 });
  bed.contract.mineLogs([bed.contract.event('WithdrawInitiated', [of.hex], [amount, 1_800_001_200])]);
}
const filters = () =>
  bed.contract.asked.splice(0).filter(({ method }) => method === 'eth_getLogs') as unknown as {
    params: [{ fromBlock: string; toBlock: string }];
    rank: string;
  }[];
const rangesNow = () => filters().map(({ params: [{ fromBlock, toBlock }] }) => [Number(fromBlock), Number(toBlock)]);
const pending = async (of = channel) => (await bed.noted(of.id)).state.withdrawAmount;

describe('the watch over withdrawals', () => {
  test('notes the channels of ours that the logs name, each once, and tells the operator', async () => {
    await watch.run();
    withdraw(channel, 5n);
    withdraw(channel, 6n);
    bed.contract.mineLogs([bed.contract.event('WithdrawInitiated', [`0x${'77'.repeat(32)}`], [9n, 1_800_001_200])]);
    reads.length = 0;
    await watch.run();
    expect(await pending()).toBe(6n);
    expect([reads, bed.logged]).toEqual([
      [[1, 'collect']],
      [['info', 'payers have asked to withdraw money from their channels', { channels: 1 }]],
    ]);
  });

  test('reads the logs of the contract from the head of the first round on, and leaves no block out', async () => {
    await watch.run();
    const [first] = filters();
    expect(first).toMatchObject({
      rank: 'collect',
      params: [{ address: SETTLEMENT, topics: [WITHDRAW_INITIATED], fromBlock: '0x3e8', toBlock: '0x3e8' }],
    });
    bed.contract.block = 1010;
    await watch.run();
    bed.contract.block = 22_000;
    await watch.run();
    expect(rangesNow()).toEqual([
      [1001, 1010],
      [1011, 11_009],
      [11_010, 21_008],
      [21_009, 22_000],
    ]);
    expect([reads, bed.logged]).toEqual([[], []]);
    await watch.run();
    expect(bed.contract.asked).toEqual([]);
  });

  test('reads a channel that old logs name at the newest block, because nodes forget old states', async () => {
    await watch.run();
    withdraw(channel, 5n);
    bed.contract.block = 22_000;
    await watch.run();
    expect([await pending(), readAt]).toEqual([5n, [22_000]]);
  });

  test('reads the channels that logs name in pages of 500', async () => {
    const known = await bed.noted(channel.id);
    const paged = open({ ...bed.store, get: async (id) => ({ ...known, id }), note: async () => known });
    await paged.run();
    const ids = Array.from({ length: 501 }, (_, at) => `0x${at.toString(16).padStart(64, '0')}`);
    bed.contract.mineLogs(ids.map((id) => bed.contract.event('WithdrawInitiated', [id], [1n, 1_800_001_200])));
    await paged.run();
    expect(reads.map(([count]) => count)).toEqual([500, 1]);
  });

  test('reads in the first round every unclaimed channel that was read before the start', async () => {
    await bed.charge(channel, 500n);
    const fresh = await bed.open(10_000n);
    await bed.clock.advance(1);
    const restarted = open();
    await bed.charge(fresh, 500n);
    await bed.store.note(
      { ...(await bed.noted(fresh.id)) },
      (await bed.reader.read([fresh.id]))[0]!,
      bed.clock.nowMs(),
    );
    bed.contract.put(channel.id, { withdrawAmount: 7n });
    await restarted.run();
    expect([reads, await pending()]).toEqual([[[1, 'collect']], 7n]);
  });

  test('reads an unclaimed channel again after a twelfth of the delay, and no channel without charges', async () => {
    await bed.open(10_000n);
    await bed.charge(channel, 500n);
    await bed.clock.advance(99_999);
    await watch.run();
    expect(reads).toEqual([]);
    await bed.clock.advance(1);
    await watch.run();
    expect(reads).toEqual([[1, 'collect']]);
    expect((await bed.noted(channel.id)).readAt).toBe(bed.clock.nowMs());
  });

  test('goes through the unclaimed channels in pages of 500', async () => {
    await bed.charge(channel, 500n);
    const known = await bed.noted(channel.id);
    const pages: unknown[] = [];
    const paged = open({
      ...bed.store,
      listUnclaimed: async (network, limit, after) => {
        pages.push([network, limit, after]);
        return pages.length === 1 ? Array.from({ length: 500 }, () => known) : [];
      },
    });
    await paged.run();
    expect(pages).toEqual([
      [NETWORK, 500, undefined],
      [NETWORK, 500, { unclaimedSince: known.unclaimedSince, id: known.id }],
    ]);
    pages.length = 0;
    await open({
      ...bed.store,
      listUnclaimed: async () => {
        pages.push(1);
        return [{ ...known, unclaimedSince: null }];
      },
    }).run();
    expect(pages).toHaveLength(1);
  });

  test('looks at a settled deposit again once, 20 blocks later, and notes that the chain took it back', async () => {
    const { payments } = bed.stores;
    const paid = { channelId: channel.id, max: 100n, signature: Buffer.alloc(65, 1) };
    await payments.reserve(depositSale('d1', 'a', 100n, { channel: paid }), 0, null);
    await settleDeposit(bed.stores, 'd1', 1001);
    bed.contract.put(channel.id, { balance: 0n });
    bed.contract.block = 1020;
    await watch.run();
    expect([reads, (await bed.noted(channel.id)).state.balance]).toEqual([[], 15_000n]);
    bed.contract.block = 1021;
    await watch.run();
    await watch.run();
    expect([reads, (await bed.noted(channel.id)).state.balance]).toEqual([[[1, 'collect']], 0n]);
  });

  test('reads the logs although the channels cannot be read, and the channels although the logs cannot', async () => {
    await bed.charge(channel, 500n);
    await bed.clock.advance(100_000);
    const short = open(bed.store, () => []);
    await expect(short.run()).rejects.toThrow(`the channel ${channel.hex} cannot be read`);
    expect(rangesNow()).toEqual([[1000, 1000]]);
    bed.contract.before = (method) => {
      if (method === 'eth_getLogs') throw new RpcError(-32005, 'too many blocks');
    };
    bed.contract.put(channel.id, { withdrawAmount: 7n });
    await expect(watch.run()).rejects.toThrow('too many blocks');
    expect(await pending()).toBe(7n);
  });
});

test('an alarm that comes after its channel was claimed early causes no other claim for an hour', async () => {
  alarms.noteClaim(channel.id);
  alarms.raise(channel.id, 1001);
  expect(alarms.isDue(channel.id)).toBe(false);
  await bed.clock.advance(3_599_999);
  expect(alarms.isDue(channel.id)).toBe(false);
  await bed.clock.advance(1);
  expect(alarms.isDue(channel.id)).toBe(true);
});
