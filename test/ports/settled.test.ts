import { expect, test } from 'vitest';
import {
  channelState,
  channelTerms,
  depositSale,
  SEEN_AT,
  settleDeposit,
  voucherSale,
} from '../support/ledger/channel-rows.ts';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';
import { reservation } from '../support/ledger/ledger-rows.ts';
import { accountedOf, grantOf, NOON } from '../support/lightning/lightning-rows.ts';

describePorts('what was earned', (adapter) => {
  const ledger = useLedger(adapter);

  const plain = Buffer.alloc(20, 0x36);
  const gateway = Buffer.alloc(20, 0x77);
  async function settle(id: string, endedAt: number, contract = plain): Promise<void> {
    const { payments } = ledger.stores;
    await payments.reserve(reservation(id, id, { contract }), 0, null);
    await payments.move(id, ['reserved'], 'settling', {});
    await payments.move(id, ['settling'], 'settled', { endedAt });
  }

  test('is summed by rail and contract, from a moment on and up to another', async () => {
    for (const [id, endedAt] of [
      ['early', NOON - 1],
      ['first', NOON],
      ['last', NOON + 9],
      ['late', NOON + 10],
    ] as const) {
      await settle(id, endedAt);
    }
    await settle('deposit', NOON + 1, gateway);
    await ledger.stores.payments.reserve(reservation('open', 'open'), 0, null);
    const { lightning } = ledger.stores;
    await lightning.claim(grantOf('a', { claimedAt: NOON, amountMsat: 2000n }));
    await lightning.claim(grantOf('b', { claimedAt: NOON + 5, amountMsat: 5000n }));
    await lightning.claim(grantOf('c', { claimedAt: NOON + 10 }));
    await lightning.claim(accountedOf('theirs', {}, { claimedAt: NOON }));
    expect(await ledger.stores.settled.settledBetween(NOON, NOON + 10)).toEqual([
      { rail: 'usdc', contract: plain, count: 2, amount: 1000n },
      { rail: 'usdc', contract: gateway, count: 1, amount: 500n },
      { rail: 'lightning', contract: null, count: 2, amount: 7000n },
    ]);
  });

  test('of a channel is what was charged, not what was deposited', async () => {
    const { payments, channels, settled } = ledger.stores;
    await channels.note(channelTerms('a'), channelState(), SEEN_AT);
    await payments.reserve(depositSale('d', 'a', 100n), 0, null);
    await settleDeposit(ledger.stores, 'd', 101, NOON);
    const voucher = voucherSale('s', 'a', 150n, { price: 50n, reservedAt: NOON + 1 });
    expect(await channels.charge(voucher, Buffer.from('reply'), NOON + 9)).not.toBeNull();
    expect((await settled.settledBetween(NOON, NOON + 2))[0]).toEqual({
      rail: 'usdc',
      contract: plain,
      count: 2,
      amount: 150n,
    });
  });

  test('is what was paid, which may be more than the price, and nothing of a payment that failed', async () => {
    const { payments, lightning, settled } = ledger.stores;
    for (const id of ['paid', 'failed']) {
      await payments.reserve(reservation(id, id, { amount: 500n, price: 400n }), 0, null);
      await payments.move(id, ['reserved'], 'settling', {});
    }
    await payments.move('paid', ['settling'], 'settled', { endedAt: NOON });
    expect(await payments.get('paid')).toMatchObject({ charged: null });
    await payments.move('failed', ['settling'], 'failed', { reason: 'reverted', endedAt: NOON });
    await lightning.claim(grantOf('early', { claimedAt: NOON - 1 }));
    expect(await settled.settledBetween(NOON, NOON + 1)).toEqual([
      { rail: 'usdc', contract: plain, count: 1, amount: 500n },
      { rail: 'lightning', contract: null, count: 0, amount: 0n },
    ]);
  });

  test('is empty without payments', async () => {
    expect(await ledger.stores.settled.settledBetween(0, NOON)).toEqual([
      { rail: 'lightning', contract: null, count: 0, amount: 0n },
    ]);
  });
});
