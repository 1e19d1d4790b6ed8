import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCorrections, StaleVoucher } from '../../../../../src/payment/channels/voucher-sale.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
let corrections: ReturnType<typeof createCorrections>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  await bed.charge(channel, 500n);
  await bed.charge(channel, 700n);
  corrections = createCorrections(bed.store);
});
afterEach(() => bed.close());

/** Answers a stale voucher over `max` of a request with this number. */
async function answer(max: bigint, arrival: number) {
  const stale = new StaleVoucher(await bed.noted(channel.id), { code: 'cumulative_below_claimed' });
  const given = await corrections.answer(channel.id, max, stale, arrival);
  return { given, isPlain: given === stale };
}

test('requests are numbered as they arrive', () => {
  expect([corrections.arrive(), corrections.arrive()]).toEqual([1, 2]);
});

test('a stale voucher that is repeated after its correction gets the receipt of the sale that it missed', async () => {
  expect((await answer(500n, corrections.arrive())).isPlain).toBe(true);
  const { given } = await answer(500n, corrections.arrive());
  expect(given).toMatchObject({
    reason: 'invalid_batch_settlement_evm_cumulative_below_claimed',
    settlement: { success: true, transaction: '', extra: { chargedAmount: '500' } },
    correction: { extra: { channelState: { chargedCumulativeAmount: '700' } } },
  });
});

test('requests that were made at once are no repetitions', async () => {
  const [first, second] = [corrections.arrive(), corrections.arrive()];
  expect([(await answer(500n, first)).isPlain, (await answer(500n, second)).isPlain]).toEqual([true, true]);
});

test('another stale voucher is no repetition, and no voucher that has bought nothing gets a receipt', async () => {
  await answer(500n, corrections.arrive());
  expect((await answer(700n, corrections.arrive())).isPlain).toBe(true);
  expect((await answer(700n, corrections.arrive())).isPlain).toBe(false);
  await answer(600n, corrections.arrive());
  expect((await answer(600n, corrections.arrive())).isPlain).toBe(true);
});

test('a sale that has not ended as settled gives no receipt', async () => {
  const { store } = bed;
  const unsettled = createCorrections({
    get: store.get,
    findSale: async (...asked) => {
      const sale = await store.findSale(...asked);
      return sale && { ...sale, state: 'unknown' };
    },
  });
  const stale = new StaleVoucher(await bed.noted(channel.id));
  await unsettled.answer(channel.id, 500n, stale, unsettled.arrive());
  expect(await unsettled.answer(channel.id, 500n, stale, unsettled.arrive())).toBe(stale);
});
