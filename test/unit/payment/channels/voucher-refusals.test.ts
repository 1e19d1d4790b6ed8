import { describe, expect, test } from 'vitest';
import { AppError, Unavailable, UpstreamFailed } from '../../../../src/errors.ts';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { BUYER } from '../../../support/channels/channel-ledger.ts';
import { type Call, type MessageOptions, openChannelSale, PRICE } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';
import { depositSale, operation } from '../../../support/ledger/channel-rows.ts';

const [ID, OTHER_ID] = ['identifier-000001', 'identifier-000002'];
const LONG = 'x'.repeat(41);

describe('a voucher is refused', () => {
  test.each<[string, string, MessageOptions]>([
    ['for another network', '402 network_mismatch', { accepted: { network: 'eip155:1' } }],
    ['for other terms', '402 No matching payment requirements', { accepted: { amount: '1' } }],
    ['with a signature that is not the payer’s', '402 voucher_signature', { isVoucherForged: true }],
  ])('%s, and nothing runs', async (_, refusal, wrong) => {
    const { ask, voucher, runs, noted } = await openChannelSale();
    expect(await ask({}, voucher(PRICE, wrong))).toBe(refusal);
    expect([runs(), (await noted()).charged]).toEqual([0, 0n]);
  });

  test('where it is over no more than what is claimed, without a turn and without a read of the chain', async () => {
    const { ask, voucher, bed, see, on, count, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await see({ totalClaimed: PRICE });
    for (const max of [PRICE, PRICE - 1n])
      expect(await ask({ tag: 'b' }, voucher(max))).toBe('402 cumulative_below_claimed, charges: 500');
    expect([bed.contract.asked, runs()]).toEqual([[], 1]);
    expect(await ask({ tag: 'c' }, voucher(2n * PRICE))).toBe('answer 2');
    // Not even while the channel has a request in its turn.
    const held = createPause();
    const first = ask({ tag: 'd', run: held.pause }, voucher(3n * PRICE));
    await held.reached;
    expect(await ask({ tag: 'b' }, voucher(PRICE))).toBe('402 cumulative_below_claimed, charges: 1000');
    held.go();
    expect(await first).toBe('answer 3');
    // Nor is its identifier looked up.
    on('find the identifier');
    count('find the identifier');
    await ask({ tag: 'b' }, voucher(PRICE, { identifier: ID }));
    expect(count('find the identifier')).toBe(0);
  });

  test('for a stranger who has it from a claim, without the charges and the last voucher, also in its turn', async () => {
    const { ask, voucher, see, on, clock } = await openChannelSale();
    await ask({}, voucher(PRICE, { identifier: ID }));
    await ask({}, voucher(2n * PRICE));
    await see({ totalClaimed: PRICE });
    const stranger = { client: '198.51.100.9' };
    const unseen = '402 cumulative_below_claimed, charges: not shown';
    expect(await ask({ ...stranger, tag: 'b' }, voucher(PRICE))).toBe(unseen);
    // The payment identifier is the buyer's alone.
    expect(await ask({ ...stranger, tag: 'b' }, voucher(PRICE, { identifier: ID }))).toMatch(/charges: 1000$/);
    // A voucher that has bought nothing is in no claim.
    expect(await ask({ ...stranger, tag: 'b' }, voucher(PRICE - 1n))).toMatch(/charges: 1000$/);
    // A claim that is noted while it waits: the first answer, and that to the same voucher again.
    for (const _ of ['first', 'again']) {
      await see({ totalClaimed: PRICE });
      on('read the channel', async (go, nth) => {
        const row = await go();
        if (nth === 1) await see({ totalClaimed: 2n * PRICE });
        return row;
      });
      expect(await ask({ ...stranger, tag: 'b' }, voucher(2n * PRICE))).toBe(unseen);
      // The channel waits so long for its payer.
      await clock.advance(500);
    }
    // A voucher that no claim has published shows both: only the channel's key can sign it.
    expect(await ask({ ...stranger, tag: 'b' }, voucher(4n * PRICE))).toBe(
      '402 cumulative_amount_mismatch, charges: 1000',
    );
  });

  test('where another payment holds its identifier, with 409, before its turn', async () => {
    const { ask, voucher, runs } = await openChannelSale();
    await ask({}, voucher(PRICE, { identifier: ID }));
    const conflict = (charged: string) => `409 payment_identifier_conflict, charged: ${charged}`;
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE, { identifier: ID }))).toBe(conflict('false'));
    // This voucher is charged: the answer does not say that nothing is.
    expect(await ask({ tag: 'b' }, voucher(PRICE, { identifier: ID }))).toBe(conflict('unknown'));
    expect(runs()).toBe(1);
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE, { identifier: OTHER_ID }))).toBe('answer 2');
    // Nor does it of another voucher that is charged.
    expect(await ask({ tag: 'c' }, voucher(2n * PRICE, { identifier: ID }))).toBe(conflict('unknown'));
  });

  test.each(['refund', 'deposit'])(
    'while a %s of its channel is open: nothing runs, and it is read once',
    async (what) => {
      const { ask, voucher, bed, channel, runs, noted, count } = await openChannelSale();
      const charge = { channelId: channel.id, max: PRICE, signature: Buffer.alloc(65, 1) };
      if (what === 'deposit')
        await bed.stores.payments.reserve({ ...depositSale('d', 'a', PRICE), channel: charge }, 0, null);
      else await bed.store.begin(operation('r', { kind: 'refund', channelId: channel.id }), { charged: 0n });
      const refused = ask({ price: 2n * PRICE }, voucher(2n * PRICE, { accepted: { amount: '1000' } }));
      expect(await refused).toBe('402 channel_busy');
      expect(count('read the channel')).toBe(1);
      expect([runs(), (await noted()).charged]).toEqual([0, 0n]);
    },
  );

  test('while the chain cannot be read, which is no failure of the data that is sold', async () => {
    const { sell, ask, voucher, bed, clock, runs, failed } = await openChannelSale();
    const away = () => {
      throw new UpstreamFailed('chain', 'no provider answered');
    };
    const unavailable = { status: 503, code: 'settlement_unavailable', retryAfterSeconds: 5 };
    const cause = expect.any(UpstreamFailed);
    bed.contract.before = away;
    await clock.advance(700_000);
    await expect(sell({}, voucher(PRICE))).rejects.toMatchObject({ ...unavailable, charged: false, cause });
    // One that may be charged already is in doubt.
    bed.contract.before = () => {};
    await ask({}, voucher(PRICE));
    bed.contract.before = away;
    await clock.advance(700_000);
    await expect(sell({ tag: 'b' }, voucher(PRICE))).rejects.toMatchObject({ ...unavailable, charged: 'unknown' });
    expect([runs(), failed]).toEqual([1, []]);
  });

  test('while something stops all sales', async () => {
    const { ask, voucher, script, runs } = await openChannelSale();
    script.stopsSales = '1 of 3 RPC providers can confirm a payment, 2 must';
    expect(await ask({}, voucher(PRICE))).toBe('503 settlement_unavailable, charged: false');
    expect(runs()).toBe(0);
    script.stopsSales = null;
    expect(await ask({}, voucher(PRICE))).toBe('answer 1');
  });

  test('while charges of its channel wait long for a claim that cannot be sent', async () => {
    const { ask, sell, voucher, script, clock, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    script.cannotSend = 'no gas';
    await clock.advance(2000);
    expect(await ask({ tag: 'b' }, voucher(2n * PRICE))).toBe('answer 2');
    await clock.advance(1);
    const message = 'charges of this channel cannot be claimed now: no gas';
    const unavailable = { status: 503, code: 'settlement_unavailable', charged: false, message };
    await expect(sell({ tag: 'c' }, voucher(3n * PRICE))).rejects.toMatchObject(unavailable);
    expect(runs()).toBe(2);
  });

  test('once more than ten times the threshold was charged while no claim can be sent, before any of it is old', async () => {
    const { ask, sell, voucher, script, runs } = await openChannelSale();
    script.cannotSend = 'no gas';
    for (let call = 1n; call <= 10n; call++) await ask({ tag: `${call}` }, voucher(call * PRICE));
    const message = 'charges of payment channels cannot be claimed now: no gas';
    const unavailable = { status: 503, code: 'settlement_unavailable', charged: false, message };
    await expect(sell({ tag: 'last' }, voucher(11n * PRICE))).rejects.toMatchObject(unavailable);
    expect(runs()).toBe(10);
    script.cannotSend = null;
    expect(await ask({ tag: 'last' }, voucher(11n * PRICE))).toBe('answer 11');
  });

  test('where another process takes its charge three times, and the endpoint runs once', async () => {
    const { ask, voucher, on, count, runs } = await openChannelSale();
    on('charge', async () => null);
    expect(await ask({}, voucher(PRICE))).toBe('402 channel_busy');
    expect([count('charge'), runs()]).toEqual([3, 1]);
  });

  test('while 32 stale ones wait for its channel, and never one that fits', async () => {
    const { ask, voucher, waiting, runs } = await openChannelSale();
    await ask({}, voucher(PRICE));
    const held = createPause();
    const first = ask({ tag: 'b', run: held.pause }, voucher(2n * PRICE));
    await held.reached;
    const leaving = new AbortController();
    const stale = (tag: string) => ask({ tag, signal: leaving.signal }, voucher(9n * PRICE));
    const crowd = Array.from({ length: 32 }, (_, at) => stale(`stale ${at}`));
    await expect.poll(waiting).toBe(32);
    expect(await stale('one too many')).toBe('402 channel_busy');
    const fitting = ask({ tag: 'b' }, voucher(2n * PRICE));
    await expect.poll(waiting).toBe(33);
    leaving.abort();
    expect(new Set(await Promise.all(crowd))).toEqual(new Set(['402 channel_busy']));
    held.go();
    expect([await first, await fitting, runs()]).toEqual(['answer 2', 'answer 2', 2]);
  });

  test('where its buyer leaves before its turn', async () => {
    const { ask, voucher, waiting } = await openChannelSale();
    const held = createPause();
    const first = ask({ run: held.pause }, voucher(PRICE));
    await held.reached;
    const leaving = new AbortController();
    const second = ask({ tag: 'b', signal: leaving.signal }, voucher(2n * PRICE));
    await expect.poll(waiting).toBe(1);
    leaving.abort();
    expect(await second).toBe('402 channel_busy');
    held.go();
    expect(await first).toBe('answer 1');
  });

  test('over other charges than the channel’s without a read of the chain', async () => {
    const { ask, voucher, bed, clock } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await clock.advance(2000);
    bed.contract.asked.length = 0;
    expect(await ask({ tag: 'b' }, voucher(3n * PRICE))).toBe('402 cumulative_amount_mismatch, charges: 500');
    expect(bed.contract.asked).toEqual([]);
  });

  test('of an endpoint that is off, from a client that must wait, and where the reply store is full, before its identifier is looked up', async () => {
    const { ask, voucher, failOften, count, clock, runs } = await openChannelSale({ storeBytes: 0 });
    const once = voucher(PRICE, { identifier: ID });
    expect(await ask({}, once)).toBe('503 reply_store_full, charged: false');
    await failOften();
    // A client that must wait hears that first; what is off is off for everybody.
    expect(await ask({}, once)).toBe('429 client_failures, charged: false');
    expect(await ask({ isOff: true }, once)).toBe('402 No matching payment requirements');
    expect([count('find the identifier'), runs()]).toEqual([0, 0]);
    await clock.advance(60_000);
    expect(await ask({}, once)).toBe('503 reply_store_full, charged: false');
  });
});

describe('what is checked of a call before its voucher', () => {
  test('are the parameters, then the identifier, then whether the payload can be read', async () => {
    const { ask, voucher, count, failed } = await openChannelSale();
    const payload = { type: 'nothing' };
    const both = { ...voucher(PRICE, { identifier: 'short' }), payload };
    expect(await ask({ tag: LONG }, both)).toBe('400 bad_parameter, charged: false');
    expect(await ask({}, both)).toBe('400 payment_identifier_malformed, charged: false');
    expect(await ask({}, { ...voucher(PRICE), payload })).toBe('402 payload_type');
    expect([count('read the channel'), failed]).toEqual([0, []]);
  });
});

describe('a failure counts', () => {
  const failing = (error: Error) => ({ run: () => Promise.reject(error) });
  const CLIENT = [BUYER];

  test.each<[string, bigint, Call, MessageOptions, 'nobody' | 'client' | 'both']>([
    ['with a forged signature, for the client', PRICE, {}, { isVoucherForged: true }, 'client'],
    ['for other terms, for the client', PRICE, {}, { accepted: { amount: '1' } }, 'client'],
    ['of a route that is off, for the client', PRICE, { isOff: true }, {}, 'client'],
    ['of a channel that has bought nothing, over other charges, for the client', 2n * PRICE, {}, {}, 'client'],
    ['with a wrong parameter, for nobody', PRICE, { tag: LONG }, {}, 'nobody'],
    ['with a malformed identifier, for nobody', PRICE, {}, { identifier: 'short' }, 'nobody'],
    ['whose endpoint fails, for the signer too', PRICE, failing(new AppError(404, 'not_found', '')), {}, 'both'],
    ['whose source fails, for the signer too', PRICE, failing(new UpstreamFailed('source', 'away')), {}, 'both'],
    ['whose endpoint has no time, for nobody', PRICE, failing(new Unavailable('busy', '')), {}, 'nobody'],
    ['that buys an answer, for nobody', PRICE, {}, {}, 'nobody'],
  ])('of a voucher %s', async (_, max, call, wrong, whose) => {
    const { ask, voucher, channel, failed } = await openChannelSale();
    await ask(call, voucher(max, wrong));
    const signer = bytesToHex(channel.config.payerAuthorizer);
    expect(failed).toEqual({ nobody: [], client: CLIENT, both: [`${signer} at ${BUYER}`] }[whose]);
  });

  test('of a voucher over old charges of a channel that has bought before, for nobody, except where its balance had to be read', async () => {
    const { ask, voucher, bed, channel, clock, failed } = await openChannelSale();
    await ask({}, voucher(PRICE));
    await ask({ tag: 'b' }, voucher(PRICE));
    expect(failed).toEqual([]);
    bed.contract.put(channel.id, { balance: 2n * PRICE - 1n });
    await clock.advance(700_000);
    await ask({ tag: 'c' }, voucher(2n * PRICE));
    expect(failed).toEqual(CLIENT);
  });

  test('of a voucher that loses its charge again and again, for the signer too, because its endpoint has run', async () => {
    const { ask, voucher, channel, on, failed } = await openChannelSale();
    on('charge', async () => null);
    await ask({}, voucher(PRICE));
    expect(failed).toEqual([`${bytesToHex(channel.config.payerAuthorizer)} at ${BUYER}`]);
  });

  test('for the key that signs for the channel, and not for the payer in whose name it was funded', async () => {
    const { ask, voucher, bed, failed } = await openChannelSale();
    const of = bed.fund(10_000n, { payer: Buffer.alloc(20, 7) });
    for (let time = 0; time < 3; time++) await ask(failing(new AppError(404, 'not_found', '')), voucher(PRICE, { of }));
    expect(failed).toEqual(Array(3).fill(`${bytesToHex(of.config.payerAuthorizer)} at ${BUYER}`));
    // The signer must wait at every client now, and that is said before its identifier is looked up.
    expect(await ask({ client: '10.0.0.2' }, voucher(PRICE, { of }))).toBe('429 payer_failures, charged: false');
    expect(await ask({}, voucher(PRICE))).toBe('answer 4');
  });
});

describe('a charge that fails', () => {
  test.each([
    [
      'because the store is full, is told as that',
      new Unavailable('reply_store_full', 'full', 30),
      '503 reply_store_full, charged: false',
    ],
    [
      'without a known outcome, is told as unknown',
      new Error('the connection broke'),
      '503 settlement_unknown, charged: unknown',
    ],
  ])('%s', async (_, error, end) => {
    const { ask, voucher, on } = await openChannelSale();
    on('charge', () => Promise.reject(error));
    expect(await ask({}, voucher(PRICE))).toBe(end);
  });
});
