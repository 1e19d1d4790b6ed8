import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TooMany, Unavailable, UpstreamFailed } from '../../../../../src/errors.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { signRecoverable } from '../../../../../src/lib/secp256k1.ts';
import type { PaidOrder } from '../../../../../src/payment/rail.ts';
import { openChannelLedger, type UnitChannel } from '../../../../support/channels/channel-ledger.ts';
import { CHANNEL_TERMS, scheme } from '../../../../support/channels/channel-payment.ts';
import {
  openVoucherSeller,
  PRICE,
  orderOf as plainOrder,
  presentVoucher,
} from '../../../../support/channels/voucher-seller.ts';
import { depositSale, NETWORK, operation } from '../../../../support/ledger/channel-rows.ts';
import { hash32 } from '../../../../support/ledger/ledger-rows.ts';

// What a voucher is refused for, and in which order, over the real ledger.

const PREFIX = 'invalid_batch_settlement_evm_';

let bed: Awaited<ReturnType<typeof openChannelLedger>>;
let channel: UnitChannel;
let runs: number;
let unavailable: string | null;
let sell: ReturnType<typeof open>;
beforeEach(async () => {
  bed = await openChannelLedger();
  channel = await bed.open(10_000n);
  [runs, unavailable] = [0, null];
  sell = open();
});
afterEach(() => bed.close());

const open = (changes: { charge?: () => Promise<null>; read?: () => Promise<never> } = {}) =>
  openVoucherSeller(bed, { ...changes, cannotSend: () => unavailable });

const orderOf = (request = 'a', more: Partial<PaidOrder> = {}): PaidOrder =>
  plainOrder(request, {
    run: async () => {
      runs++;
      return Buffer.from(`answer ${runs}`);
    },
    ...more,
  });
/** Presents the voucher over `max`. */
const present = (max: bigint, order = orderOf(), by = sell) => presentVoucher(by, channel, max, order);
const textOf = async (delivery: ReturnType<typeof present>) => Buffer.from((await delivery).body).toString();
const refused = (name: string) => expect.objectContaining({ reason: `${PREFIX}${name}` });

describe('a sale', () => {
  test('does not begin while something stops all sales; what was sold before is given out again', async () => {
    let why: string | null = null;
    const seller = openVoucherSeller(bed, { stopsSales: () => why });
    expect(await textOf(present(PRICE, orderOf(), seller))).toBe('answer 1');
    why = '1 of 3 RPC providers can confirm a payment, 2 must';
    await expect(present(2n * PRICE, orderOf('b'), seller)).rejects.toMatchObject({
      status: 503,
      code: 'settlement_unavailable',
      charged: false,
    });
    expect(await textOf(present(PRICE, orderOf(), seller))).toBe('answer 1');
    expect(runs).toBe(1);
    why = null;
    expect(await textOf(present(2n * PRICE, orderOf('b'), seller))).toBe('answer 2');
  });

  test('is a settled row with the route, the price and the recipient, and its receipt tells the charges', async () => {
    const { receipt, onSent } = await present(PRICE);
    expect(receipt).toMatchObject({ transaction: '', amount: '', extra: { chargedAmount: '500' } });
    expect(receipt.extra).toMatchObject({ channelState: { chargedCumulativeAmount: '500' } });
    const sale = await bed.store.findSale(channel.id, PRICE);
    expect(sale).toMatchObject({
      state: 'settled',
      network: NETWORK,
      amount: PRICE,
      price: PRICE,
      deliveredAt: null,
      validAfter: 0n,
      validBefore: 0n,
    });
    expect(bytesToHex(sale!.payTo)).toBe(bytesToHex(CHANNEL_TERMS.receiver));
    expect(bytesToHex(sale!.payer)).toBe(bytesToHex(channel.config.payer));
    await onSent?.();
    expect((await bed.store.findSale(channel.id, PRICE))?.deliveredAt).toBe(bed.clock.nowMs());
    const { signature } = await bed.noted(channel.id);
    const signed = signRecoverable(scheme.voucherDigest(channel.id, PRICE), channel.privateKey);
    expect(Buffer.from(signature!)).toEqual(Buffer.from(signed));
  });

  test('has a key of its own for each voucher of one payer, and a hash of the whole voucher', async () => {
    await present(PRICE);
    await present(2n * PRICE, orderOf('b'));
    const [first, second] = [await bed.store.findSale(channel.id, PRICE), await bed.store.findSale(channel.id, 1000n)];
    expect(bytesToHex(first!.nonce)).not.toBe(bytesToHex(second!.nonce));
    expect(bytesToHex(first!.authorizationHash!)).not.toBe(bytesToHex(second!.authorizationHash!));
    expect(first!.authorizationHash).toHaveLength(32);
  });

  test('of an endpoint that fails charges nothing, and the same voucher buys the next answer', async () => {
    const failing = orderOf('a', { run: async () => Promise.reject(new Error('the source is away')) });
    await expect(present(PRICE, failing)).rejects.toThrow('the source is away');
    expect((await bed.noted(channel.id)).charged).toBe(0n);
    expect(await textOf(present(PRICE))).toBe('answer 1');
  });

  test('is asked for before it begins whether its payer or client must wait, and not for an answer that is owed', async () => {
    let asked = 0;
    const limited = orderOf('a', {
      admit: () => {
        asked++;
        if (asked > 1) throw new TooMany('payer_failures', 'wait', 5);
      },
    });
    expect(await textOf(present(PRICE, limited))).toBe('answer 1');
    await expect(present(2n * PRICE, { ...limited, requestHash: hash32('b') })).rejects.toMatchObject({
      code: 'payer_failures',
    });
    expect([asked, runs]).toEqual([2, 1]);
    expect(await textOf(present(PRICE, limited))).toBe('answer 1');
    expect(asked).toBe(2);
  });
});

describe('a voucher is refused', () => {
  test('where it is over no more than what is claimed, without a turn and without a read of the chain', async () => {
    await present(PRICE);
    bed.contract.put(channel.id, { totalClaimed: PRICE });
    await bed.store.note(await bed.noted(channel.id), (await bed.reader.read([channel.id]))[0]!, bed.clock.nowMs());
    bed.contract.asked.length = 0;
    await expect(present(PRICE, orderOf('b'))).rejects.toEqual(refused('cumulative_below_claimed'));
    await expect(present(PRICE - 1n, orderOf('b'))).rejects.toEqual(refused('cumulative_below_claimed'));
    expect([bed.contract.asked, runs]).toEqual([[], 1]);
    expect(await textOf(present(2n * PRICE, orderOf('c')))).toBe('answer 2');
  });

  test('where another payment holds its identifier, with 409, before its turn', async () => {
    const identifierHash = hash32('identifier');
    await present(PRICE, orderOf('a', { identifierHash }));
    await expect(present(2n * PRICE, orderOf('b', { identifierHash }))).rejects.toMatchObject({
      status: 409,
      code: 'payment_identifier_conflict',
      charged: false,
    });
    // This voucher is charged: the answer does not say that nothing is.
    await expect(present(PRICE, orderOf('b', { identifierHash }))).rejects.toMatchObject({
      status: 409,
      code: 'payment_identifier_conflict',
      charged: 'unknown',
    });
    expect(runs).toBe(1);
    expect(await textOf(present(2n * PRICE, orderOf('b', { identifierHash: hash32('other') })))).toBe('answer 2');
    // Nor does it of another voucher that is charged.
    await expect(present(2n * PRICE, orderOf('c', { identifierHash }))).rejects.toMatchObject({
      status: 409,
      code: 'payment_identifier_conflict',
      charged: 'unknown',
    });
  });

  test('while a refund of its channel is open, and no endpoint runs', async () => {
    const calldata = Buffer.from('call');
    await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id, calldata }), { charged: 0n });
    await expect(present(PRICE)).rejects.toEqual(refused('channel_busy'));
    expect([runs, (await bed.noted(channel.id)).charged]).toEqual([0, 0n]);
  });

  test('while a deposit of its channel is open, and no endpoint runs', async () => {
    const charge = { channelId: channel.id, max: PRICE, signature: Buffer.alloc(65, 1) };
    await bed.stores.payments.reserve({ ...depositSale('d', 'a', PRICE), channel: charge }, 0, null);
    await expect(present(2n * PRICE, orderOf('a', { price: 2n * PRICE }))).rejects.toEqual(refused('channel_busy'));
    expect(runs).toBe(0);
  });

  test('while the chain cannot be read, which is no failure of the data that is sold', async () => {
    const cause = new UpstreamFailed('chain', 'no provider answered');
    const away = open({ read: () => Promise.reject(cause) });
    const unavailable = { status: 503, code: 'settlement_unavailable', retryAfterSeconds: 5, cause };
    await bed.clock.advance(700_000);
    await expect(present(PRICE, orderOf(), away)).rejects.toMatchObject({ ...unavailable, charged: false });
    // One that may be charged already is in doubt.
    await present(PRICE);
    await bed.clock.advance(700_000);
    await expect(present(PRICE, orderOf('b'), away)).rejects.toMatchObject({ ...unavailable, charged: 'unknown' });
    expect(runs).toBe(1);
  });

  test('while charges wait for a claim that cannot be sent', async () => {
    await present(PRICE);
    unavailable = 'no gas';
    await bed.clock.advance(2001);
    await expect(present(2n * PRICE, orderOf('b'))).rejects.toMatchObject({ code: 'settlement_unavailable' });
    expect(runs).toBe(1);
  });

  test('once more than ten times the threshold was charged while no claim can be sent, before any of it is old', async () => {
    unavailable = 'no gas';
    for (let call = 1n; call <= 10n; call++) await present(call * PRICE, orderOf(`${call}`));
    await expect(present(11n * PRICE, orderOf('last'))).rejects.toMatchObject({ code: 'settlement_unavailable' });
    expect(runs).toBe(10);
    unavailable = null;
    expect(await textOf(present(11n * PRICE, orderOf('last')))).toBe('answer 11');
  });

  test('where another process takes its charge three times, and the endpoint runs once', async () => {
    let charges = 0;
    const losing = open({
      charge: async () => {
        charges++;
        return null;
      },
    });
    await expect(present(PRICE, orderOf(), losing)).rejects.toEqual(refused('channel_busy'));
    expect([charges, runs]).toEqual([3, 1]);
  });

  test('where its buyer leaves before its turn', async () => {
    const held = Promise.withResolvers<Buffer>();
    const first = present(PRICE, orderOf('a', { run: () => held.promise }));
    const leaving = new AbortController();
    const asker = { client: 'one', hasFailed: false, signal: leaving.signal };
    const second = present(2n * PRICE, orderOf('b', { asker }));
    await expect.poll(() => bed.clock.pendingSleeps().length).toBe(1);
    leaving.abort();
    await expect(second).rejects.toEqual(refused('channel_busy'));
    held.resolve(Buffer.from('late'));
    expect(await textOf(first)).toBe('late');
  });
});

describe('the money of the channel', () => {
  test('is read again before a voucher is refused for it, and a deposit since then is seen', async () => {
    for (let call = 1n; call <= 20n; call++) await present(call * PRICE, orderOf(`${call}`));
    await bed.clock.advance(2000);
    bed.contract.put(channel.id, { balance: 20_000n });
    expect(await textOf(present(21n * PRICE, orderOf('more')))).toBe('answer 21');
  });

  test('is not read again for a voucher over other charges', async () => {
    await present(PRICE);
    await bed.clock.advance(2000);
    bed.contract.asked.length = 0;
    await expect(present(3n * PRICE, orderOf('b'))).rejects.toEqual(refused('cumulative_amount_mismatch'));
    expect(bed.contract.asked).toEqual([]);
  });
});

describe('an answer comes again', () => {
  test('to the same client only, and not for another request', async () => {
    await present(PRICE);
    await present(2n * PRICE, orderOf('b'));
    await expect(present(PRICE, orderOf('a', { identity: 'two' }))).rejects.toEqual(
      refused('cumulative_amount_mismatch'),
    );
    await bed.clock.advance(500);
    await expect(present(PRICE, orderOf('b'))).rejects.toEqual(refused('cumulative_amount_mismatch'));
    expect(await textOf(present(PRICE))).toBe('answer 1');
    const { receipt } = await present(PRICE);
    expect(receipt.extra).toMatchObject({ chargedAmount: '500', channelState: { chargedCumulativeAmount: '500' } });
  });

  test('as often as it may, and then its voucher is told the charges, with an identifier as without one', async () => {
    for (const [at, identifierHash] of [null, hash32('identifier')].entries()) {
      const [max, order] = [BigInt(at + 1) * PRICE, orderOf(`request ${at}`, { identifierHash })];
      const bought = await present(max, order);
      await bought.onSent?.();
      for (let again = 0; again < 5; again++) expect(await textOf(present(max, order))).toBe(`answer ${at + 1}`);
      await expect(present(max, order)).rejects.toEqual(refused('cumulative_amount_mismatch'));
      await bed.clock.advance(500);
    }
    expect(runs).toBe(2);
  });

  test('or is 410 when it was never delivered and is kept no more, so that the client does not pay again', async () => {
    for (const [at, identifierHash] of [null, hash32('identifier')].entries()) {
      const [max, order] = [BigInt(at + 1) * PRICE, orderOf(`request ${at}`, { identifierHash })];
      await present(max, order);
      await bed.clock.advance(8 * 86_400_000);
      await expect(present(max, order)).rejects.toMatchObject({
        status: 410,
        code: 'answer_gone',
        charged: true,
        // The client learns the charges from it.
        receipt: { success: true, extra: { channelState: { chargedCumulativeAmount: String(max) } } },
      });
    }
    expect(runs).toBe(2);
  });

  test('by the payment identifier from another address', async () => {
    const identifierHash = hash32('identifier');
    await present(PRICE, orderOf('a', { identifierHash }));
    expect(await textOf(present(PRICE, orderOf('a', { identifierHash, identity: 'two' })))).toBe('answer 1');
  });
});

test('a voucher that may be charged is never answered as uncharged while its client must wait', async () => {
  await present(PRICE);
  const wait = () => {
    throw new TooMany('client_failures', 'wait', 5);
  };
  const limited = orderOf('a', { identity: 'two', admit: wait });
  await expect(present(PRICE, limited)).rejects.toMatchObject({
    status: 429,
    charged: 'unknown',
    retryAfterSeconds: 5,
  });
  const fresh = orderOf('b', { admit: wait });
  await expect(present(2n * PRICE, fresh)).rejects.toMatchObject({ status: 429, charged: false });
});

describe('a stale voucher', () => {
  test('that comes again after its correction gets the receipt of the sale that it missed', async () => {
    await present(PRICE);
    await expect(present(PRICE, orderOf('b'))).rejects.toMatchObject({ settlement: null });
    await bed.clock.advance(500);
    await expect(present(PRICE, orderOf('b'))).rejects.toMatchObject({
      settlement: { success: true, extra: { chargedAmount: '500' } },
    });
  });

  test('holds the channel for the corrected request: another one waits for half a second', async () => {
    await present(PRICE);
    await expect(present(PRICE, orderOf('b'))).rejects.toEqual(refused('cumulative_amount_mismatch'));
    let isSold = false;
    const other = present(2n * PRICE, orderOf('c')).then(() => {
      isSold = true;
    });
    await expect.poll(() => bed.clock.pendingSleeps().length).toBe(2);
    expect(isSold).toBe(false);
    await bed.clock.advance(500);
    await other;
  });

  test('lets the corrected request pass at once', async () => {
    await present(PRICE);
    await expect(present(PRICE, orderOf('b'))).rejects.toEqual(refused('cumulative_amount_mismatch'));
    expect(await textOf(present(2n * PRICE, orderOf('b')))).toBe('answer 2');
  });
});

describe('a charge that fails', () => {
  test('because the store is full is told as that', async () => {
    const full = open({ charge: async () => Promise.reject(new Unavailable('reply_store_full', 'full', 30)) });
    await expect(present(PRICE, orderOf(), full)).rejects.toMatchObject({ code: 'reply_store_full' });
  });

  test('without a known outcome is told as unknown', async () => {
    const broken = open({ charge: async () => Promise.reject(new Error('the connection broke')) });
    await expect(present(PRICE, orderOf(), broken)).rejects.toMatchObject({
      code: 'settlement_unknown',
      charged: 'unknown',
    });
  });
});

test('a failure that is no stale voucher does not hold the channel for a correction', async () => {
  await expect(present(PRICE, orderOf('a', { run: async () => Promise.reject(new Error('away')) }))).rejects.toThrow(
    'away',
  );
  expect(await textOf(present(PRICE, orderOf('b')))).toBe('answer 1');
});
