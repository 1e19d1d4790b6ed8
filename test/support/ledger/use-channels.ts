import { expect } from 'vitest';
import type { VoucherSale } from '../../../src/store/ports/channels.ts';
import { channelState, channelTerms, depositSale, SEEN_AT, voucherSale } from './channel-rows.ts';
import { type Adapter, ofNow, useLedger } from './ledger-adapters.ts';

export const REPLY = Buffer.from('the answer');
export const KEEP_UNTIL = SEEN_AT + 900_000;
/** The terms of the channel that most tests use, without its id. */
export const { id: ID, ...TERMS } = channelTerms('a');

/** Opens a ledger for each test of a suite, with the most frequent calls of the tests of channels, on the channel `a`. */
export function useChannels(adapter: Adapter) {
  const ledger = useLedger(adapter);
  const payments = ofNow(() => ledger.stores.payments);
  const channels = ofNow(() => ledger.stores.channels);
  const charge = async (sale: VoucherSale) => (await channels.charge(sale, REPLY, KEEP_UNTIL)) !== null;
  /** All rows that a refused write could have changed. */
  const contents = async () => ({
    channels: await ledger.sql('SELECT * FROM channels ORDER BY id'),
    operations: await ledger.sql('SELECT * FROM channel_operations ORDER BY id'),
    payments: await ledger.sql('SELECT * FROM usdc_payments ORDER BY id'),
    replies: await ledger.sql('SELECT * FROM usdc_replies ORDER BY payment_id'),
  });

  return {
    ledger,
    payments,
    channels,
    charge,
    /** Notes a state of a channel. */
    seen: (name = 'a', more: Parameters<typeof channelState>[0] = {}, now = SEEN_AT) =>
      channels.note(channelTerms(name), channelState(more), now),
    pay: (id: string, max: bigint, more: Parameters<typeof voucherSale>[3] = {}) =>
      charge(voucherSale(id, 'a', max, more)),
    deposit: (id: string, max: bigint, more: Parameters<typeof depositSale>[3] = {}) =>
      payments.reserve(depositSale(id, 'a', max, more), 0, null),
    charged: async () => (await channels.get(ID))?.charged,
    /** Expects that a write answers false and that no row differs afterwards. */
    refuses: async (write: () => Promise<boolean>) => {
      const before = await contents();
      expect(await write()).toBe(false);
      expect(await contents()).toEqual(before);
    },
  };
}
