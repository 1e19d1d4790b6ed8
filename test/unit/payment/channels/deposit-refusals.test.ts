import { describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { BUYER, START_MS } from '../../../support/channels/channel-ledger.ts';
import { AWAY, type MessageOptions, openChannelSale, PRICE } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';
import { depositSale, operation } from '../../../support/ledger/channel-rows.ts';
import { reservation } from '../../../support/ledger/ledger-rows.ts';

const NOW = START_MS / 1000;
const LONG = 'x'.repeat(41);
const STALE = '402 cumulative_amount_mismatch, charges: 500';

describe('a deposit is refused', () => {
  test.each<[string, string, MessageOptions]>([
    ['for another network', 'network_mismatch', { accepted: { network: 'eip155:1' } }],
    ['for other terms', 'No matching payment requirements', { accepted: { amount: '1' } }],
    ['with a voucher that is not the payer’s', 'voucher_signature', { isVoucherForged: true }],
    ['below the least amount', 'deposit_below_min_deposit', { amount: 999n }],
    ['that expires too soon', 'payload_authorization_valid_before', { validBefore: NOW + 10 }],
    ['that is valid for too long', 'payload_authorization_valid_before', { validBefore: NOW + 721 }],
    ['that is not valid yet', 'payload_authorization_valid_after', { validAfter: NOW }],
  ])(
    '%s, without a question to the chain, for nobody’s failure, and before its client must wait',
    async (_, name, wrong) => {
      const { ask, deposit, script, bed, failOften, failed } = await openChannelSale();
      await failOften();
      bed.contract.asked.length = 0;
      expect(await ask({}, deposit(PRICE, wrong))).toBe(`402 ${name}`);
      expect([script.asked, bed.contract.asked, failed]).toEqual([[], [], []]);
      expect(await ask({}, deposit(PRICE))).toBe('429 client_failures, charged: false');
    },
  );

  test('where it cannot be read, after its parameters and its identifier, for nobody’s failure', async () => {
    const { ask, deposit, failed } = await openChannelSale();
    const { payload, ...rest } = deposit(PRICE, { identifier: 'short' });
    const unread = { ...payload, deposit: { amount: '5000' } };
    expect(await ask({ tag: LONG }, { ...rest, payload: unread })).toBe('400 bad_parameter, charged: false');
    expect(await ask({}, { ...rest, payload: unread })).toBe('400 payment_identifier_malformed, charged: false');
    expect(await ask({}, { ...deposit(PRICE), payload: unread })).toBe('402 erc3009_authorization_required');
    expect(failed).toEqual([]);
  });

  test('while deposits cannot be settled, of a refused payer, for a route that is off, and where the reply store is full', async () => {
    const { ask, deposit, script, runs } = await openChannelSale({ storeBytes: 0 });
    expect(await ask({}, deposit(PRICE))).toBe('503 reply_store_full, charged: false');
    script.unavailable = 'no gas';
    expect(await ask({}, deposit(PRICE))).toBe('503 settlement_unavailable, charged: false');
    script.refusesPayer = 'its settlements move nothing';
    expect(await ask({}, deposit(PRICE))).toBe('429 payer_refused, charged: false');
    expect(await ask({ isOff: true }, deposit(PRICE))).toBe('402 No matching payment requirements');
    expect([runs(), script.asked]).toEqual([0, []]);
  });

  test('with a signature that is not the payer’s, which counts for the client alone', async () => {
    const { ask, deposit, script, failed } = await openChannelSale();
    const forged = deposit(PRICE, { isDepositForged: true });
    expect(await ask({}, forged)).toBe('402 receive_authorization_signature');
    expect(failed).toEqual([BUYER]);
    // A contract may say that it signed.
    script.wallet.hasCode = true;
    script.isSignedByContract = false;
    expect(await ask({}, forged)).toBe('402 receive_authorization_signature');
    script.refusesCode = 'a simulation is not possible';
    expect(await ask({}, forged)).toBe('503 settlement_unavailable, charged: false');
    expect(failed).toEqual([BUYER, BUYER, BUYER]);
    script.isSignedByContract = true;
    script.refusesCode = null;
    expect(await ask({}, forged)).toBe('answer 1');
  });

  test('of a payer without the money, which counts for the payer too and makes no row of a channel', async () => {
    const { ask, deposit, bed, script, failed } = await openChannelSale();
    const of = bed.fund(0n);
    script.wallet.balance = 4999n;
    expect(await ask({}, deposit(PRICE, { of }))).toBe('402 insufficient_balance');
    expect(await bed.store.get(of.id)).toBeNull();
    expect(failed).toEqual([`${bytesToHex(of.config.payer)} at ${BUYER}`]);
    script.wallet.balance = 5000n;
    expect(await ask({}, deposit(PRICE, { of }))).toBe('429 payer_short_of_funds, charged: false');
    await bed.clock.advance(4000);
    expect(await ask({}, deposit(PRICE, { of }))).toBe('answer 1');
    expect(await bed.store.get(of.id)).toMatchObject({ charged: PRICE });
  });

  test('of a payer whose money another open deposit takes', async () => {
    const { ask, deposit, bed, script } = await openChannelSale();
    const first = bed.fund(0n);
    const second = bed.fund(0n, { salt: Buffer.alloc(32, 5) }, first);
    script.wallet.balance = 9999n;
    const held = createPause();
    const sold = ask({ run: held.pause }, deposit(PRICE, { of: first }));
    await held.reached;
    expect(await ask({}, deposit(PRICE, { of: second }))).toBe('402 insufficient_balance');
    held.go();
    expect(await sold).toBe('answer 1');
    script.wallet.balance = 10_000n;
    expect(await ask({}, deposit(PRICE, { of: second }))).toBe('answer 2');
  });

  test('with a voucher over more than the price, which makes no row of a channel', async () => {
    const { ask, deposit, bed } = await openChannelSale();
    const of = bed.fund(0n);
    expect(await ask({}, deposit(PRICE + 1n, { of }))).toBe('402 cumulative_amount_mismatch, charges: 0');
    expect(await bed.store.get(of.id)).toBeNull();
  });

  test('with a voucher over more than the balance and the deposit, and taken where they are just enough', async () => {
    const { ask, deposit, bed } = await openChannelSale();
    const price = 2000n;
    const accepted = { amount: '2000' };
    const [short, enough] = [bed.fund(0n), bed.fund(0n)];
    expect(await ask({ price }, deposit(price, { of: short, amount: 1999n, accepted }))).toBe(
      '402 cumulative_amount_mismatch, charges: 0',
    );
    expect(await bed.store.get(short.id)).toBeNull();
    expect(await ask({ price }, deposit(price, { of: enough, amount: 2000n, accepted }))).toBe('answer 1');
  });

  test('with a voucher over other charges than the ledger’s, without a read, and for nobody’s failure', async () => {
    const { ask, sell, deposit, bed, voucher, script, clock, failed } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await clock.advance(600_000);
    bed.contract.asked.length = 0;
    script.wallet.balance = 0n;
    await expect(sell({ tag: 'b' }, deposit(PRICE))).rejects.toMatchObject({
      reason: 'invalid_batch_settlement_evm_cumulative_amount_mismatch',
      settlement: null,
      correction: {
        scheme: 'batch-settlement',
        isForgiven: true,
        extra: { voucherState: { signedMaxClaimable: '500' } },
      },
    });
    expect([bed.contract.asked, script.asked, failed]).toEqual([[], [], []]);
  });

  test('that a third party has sent, with the scheme’s reason', async () => {
    const { ask, deposit, script } = await openChannelSale();
    script.wallet.used = true;
    expect(await ask({}, deposit(PRICE))).toBe('402 deposit_transaction_failed');
  });

  test('that a contract’s account would not let through, with the scheme’s reason', async () => {
    const { ask, deposit, script, runs } = await openChannelSale();
    script.wouldDepositFail = true;
    expect(await ask({}, deposit(PRICE))).toBe('answer 1');
    script.wallet.hasCode = true;
    expect(await ask({ tag: 'b' }, deposit(2n * PRICE, { salt: 8 }))).toBe('402 deposit_simulation_failed');
    expect(runs()).toBe(1);
  });

  test('whose channel holds too little once it is reserved, and then nothing runs', async () => {
    const { ask, deposit, on, see, row, runs } = await openChannelSale();
    on('reserve', async (go) => {
      const reserved = await go();
      await see({ withdrawAmount: 14_501n });
      return reserved;
    });
    expect(await ask({}, deposit(PRICE))).toBe('402 cumulative_exceeds_balance');
    expect([runs(), await row()]).toEqual([0, null]);
  });
});

describe('a deposit that cannot be reserved', () => {
  test.each(['deposit', 'refund'])('is busy while a %s of its channel is open', async (what) => {
    const { ask, deposit, bed, channel, runs } = await openChannelSale();
    const charge = { channelId: channel.id, max: 2n * PRICE, signature: Buffer.alloc(65, 1) };
    if (what === 'deposit')
      await bed.stores.payments.reserve({ ...depositSale('d', 'a', PRICE), channel: charge }, 0, null);
    else await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id }), { charged: 0n });
    expect(await ask({}, deposit(PRICE))).toBe('402 channel_busy');
    expect(runs()).toBe(0);
  });

  test('is stale where its voucher has bought another call since, unless its channel is busy too', async () => {
    const { ask, deposit, voucher, another, on, bed, channel, failed } = await openChannelSale();
    const other = await another();
    on('reserve', async (go) => {
      await other.ask({ tag: 'b' }, voucher(PRICE));
      return go();
    });
    expect(await ask({}, deposit(PRICE))).toBe(STALE);
    on('reserve', async (go) => {
      await other.ask({ tag: 'd' }, voucher(2n * PRICE));
      await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id }), { charged: 2n * PRICE });
      return go();
    });
    expect(await ask({ tag: 'c' }, deposit(2n * PRICE))).toBe('402 channel_busy');
    expect(failed).toEqual([]);
  });

  test('is one too many where its payer has others open, and may come again once one has ended', async () => {
    const { ask, deposit, bed, channel, runs, failed } = await openChannelSale({ maxOpen: 1 });
    const { payments } = bed.stores;
    await payments.reserve(reservation('other', 'other', { payer: Buffer.from(channel.config.payer) }), 0, null);
    expect(await ask({}, deposit(PRICE))).toBe('429 payer_open_payments, charged: false');
    // It was read, and its channel may have got a row: that counts for the client.
    expect([runs(), failed]).toEqual([0, [BUYER]]);
    await payments.release('other', ['reserved']);
    expect(await ask({}, deposit(PRICE))).toBe('answer 1');
  });

  test('is in doubt where the ledger does not answer', async () => {
    const { ask, deposit, on } = await openChannelSale();
    on('reserve', async () => false);
    on('find the sale', AWAY);
    expect(await ask({}, deposit(PRICE))).toBe('503 ledger_unavailable, charged: unknown');
    on('reserve', AWAY);
    expect(await ask({}, deposit(PRICE))).toBe('503 ledger_unavailable, charged: unknown');
  });
});
