import { describe, expect, test } from 'vitest';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import { BUYER } from '../../../support/channels/channel-ledger.ts';
import { type Call, type MessageOptions, openChannelSale } from '../../../support/channels/channel-sale.ts';
import { createPause } from '../../../support/channels/ledger-steps.ts';

/** What the channel has bought, all of it claimed. */
const BOUGHT = 500n;
const BUSY = '402 channel_busy';
const TOO_SOON = '429 refund_too_soon, charged: false';
const NOTHING_LEFT = '402 refund_no_balance';

/** A world with a channel that may have a refund. Its state is two seconds old, so that the refund reads it again. */
async function openRefundable(charged = BOUGHT) {
  const world = await openChannelSale();
  const { bed, refund, ask, see, count } = world;
  const of = await bed.open(1_000_000n + BOUGHT);
  if (charged > 0n) await bed.charge(of, charged);
  await see({ totalClaimed: charged }, of);
  await bed.clock.advance(2000);
  return {
    ...world,
    of,
    askBack: (max = BOUGHT, call: Call = {}, more: MessageOptions = {}) => ask(call, refund(max, { of, ...more })),
    begun: () => count('begin the refund'),
  };
}

describe('a refund is refused', () => {
  test('with a voucher that is not the channel’s last, without a read, and the payer learns which is', async () => {
    const { askBack, begun, bed } = await openRefundable();
    for (const max of [499n, 501n, 0n]) expect(await askBack(max)).toBe('402 cumulative_amount_mismatch, charges: 500');
    expect([begun(), bed.contract.asked]).toEqual([0, []]);
  });

  test('with a voucher that is not the last any more once the channel was read', async () => {
    const { askBack, begun, bed, on, of } = await openRefundable();
    on('note the channel', async (go, nth) => {
      if (nth === 1) await bed.charge(of, 1000n);
      return go();
    });
    expect(await askBack()).toBe('402 cumulative_amount_mismatch, charges: 1000');
    expect(begun()).toBe(0);
  });

  test('with a voucher from before the last one, without a turn: strangers who know it keep no call from its own', async () => {
    const { ask, askBack, begun, voucher, of, on } = await openRefundable();
    await ask({}, voucher(2n * BOUGHT, { of }));
    const slow = createPause();
    on('read the channel', async (go, nth) => {
      if (nth === 1) await slow.pause();
      return go();
    });
    // More at once than may wait for a channel.
    const old = Array.from({ length: 40 }, () => askBack(BOUGHT, { client: '10.6.6.6' }));
    await slow.reached;
    expect(await ask({ tag: 'b' }, voucher(3n * BOUGHT, { of }))).toBe('answer 2');
    slow.go();
    for (const one of old) expect(await one).toMatch(/^402 cumulative_amount_mismatch, charges: /);
    expect(begun()).toBe(0);
  });

  test('within ten minutes of the last one, also where the payer asks another process', async () => {
    const { askBack, begun, bed, of, clock, another, refund } = await openRefundable();
    expect(await askBack()).toBe('refunded');
    bed.contract.put(of.id, { balance: 500_000n });
    await clock.advance(300_001);
    expect(await (await another()).ask({}, refund(BOUGHT, { of }))).toBe(TOO_SOON);
    expect(await askBack()).toBe(TOO_SOON);
    expect(begun()).toBe(1);
    await clock.advance(300_000);
    expect(await askBack()).toBe('refunded');
  });

  test('as busy while another refund of the channel is open, and does not count for the day then', async () => {
    const { askBack, begun, script } = await openRefundable();
    script.refund = 'open';
    expect(await askBack()).toBe('503 settlement_unknown, charged: unknown');
    for (let again = 0; again < 4; again++) expect(await askBack()).toBe(BUSY);
    expect(begun()).toBe(5);
  });

  test('as busy when another one has ended while the channel was read', async () => {
    const { askBack, another, bed, refund, script, of, clock } = await openRefundable();
    script.refund = 'open';
    await askBack();
    const [first] = await bed.store.openOperations(10);
    // The second one reads the channel, and meanwhile the first one ends.
    const [other, slow] = [await another(), createPause()];
    other.on('note the channel', async (go) => {
      await slow.pause();
      return go();
    });
    await clock.advance(2000);
    const second = other.ask({}, refund(BOUGHT, { of }));
    await slow.reached;
    const end = { state: 'done', amount: 40n, transaction: Buffer.alloc(32, 1), endedAt: clock.nowMs() } as const;
    await bed.store.end(first!.id, end);
    slow.go();
    expect(await second).toBe(BUSY);
    expect(await bed.store.openOperations(10)).toEqual([]);
  });

  test('as busy when its buyer leaves before its turn, and nothing is begun', async () => {
    const { ask, askBack, begun, voucher, of, waiting } = await openRefundable();
    const [held, leaving] = [createPause(), new AbortController()];
    const sold = ask({ run: held.pause }, voucher(2n * BOUGHT, { of }));
    await held.reached;
    const left = askBack(BOUGHT, { signal: leaving.signal });
    await expect.poll(waiting).toBe(1);
    leaving.abort();
    expect(await left).toBe(BUSY);
    held.go();
    expect(await sold).toBe('answer 1');
    expect(begun()).toBe(0);
  });

  test('while nothing can be sent, before anything is read or stored', async () => {
    const { askBack, begun, bed, script, count } = await openRefundable();
    script.cannotSend = 'no gas';
    count('read the channel');
    expect(await askBack()).toBe('503 settlement_unavailable, charged: false');
    expect([begun(), count('read the channel'), bed.contract.asked]).toEqual([0, 0, []]);
  });

  test('where its channel has bought nothing, without a read for it', async () => {
    const { askBack, begun, bed } = await openRefundable(0n);
    expect(await askBack(0n)).toBe(NOTHING_LEFT);
    expect([begun(), bed.contract.asked]).toEqual([0, []]);
  });

  test('where the ledger does not know its channel, which has bought nothing here', async () => {
    const { ask, refund, count, bed } = await openChannelSale();
    expect(await ask({}, refund(0n, { of: bed.fund(1_000_000n) }))).toBe(NOTHING_LEFT);
    expect(count('begin the refund')).toBe(0);
  });

  test('without a read where a client that is not the last buyer has had its refund of this payer', async () => {
    const { askBack, begun, see, of, bed, clock } = await openRefundable();
    const stranger = { client: '10.6.6.6' };
    expect(await askBack(BOUGHT, stranger)).toBe('refunded');
    await clock.advance(600_000);
    await see({ balance: 1_000_000n }, of);
    await clock.advance(2000);
    expect(await askBack(BOUGHT, stranger)).toBe(TOO_SOON);
    expect([begun(), bed.contract.asked]).toEqual([1, []]);
    expect(await askBack()).toBe('refunded');
  });

  test('and is not counted where nothing is left after the read', async () => {
    const { askBack, begun, bed, of, clock } = await openRefundable();
    bed.contract.put(of.id, { balance: BOUGHT });
    for (let time = 0; time < 4; time++) expect(await askBack()).toBe(NOTHING_LEFT);
    bed.contract.put(of.id, { balance: 1_000_000n });
    await clock.advance(2000);
    expect(await askBack()).toBe('refunded');
    expect(begun()).toBe(1);
  });

  test('of a part that is more than what is left', async () => {
    const { askBack } = await openRefundable();
    expect(await askBack(BOUGHT, {}, { amount: 1_000_001n })).toBe('402 refund_amount_invalid');
  });

  test('where its transaction failed', async () => {
    const { askBack, script } = await openRefundable();
    script.refund = 'failed';
    expect(await askBack()).toBe('402 refund_transaction_failed');
  });
});

describe('what is checked of a refund before its channel', () => {
  test.each<[string, string, MessageOptions]>([
    ['for another network', '402 network_mismatch', { accepted: { network: 'eip155:1' } }],
    ['for other terms', '402 No matching payment requirements', { accepted: { amount: '1' } }],
    ['with a voucher that is not the payer’s', '402 voucher_signature', { isVoucherForged: true }],
  ])('refuses one %s, which counts for the client alone', async (_, refusal, wrong) => {
    const { askBack, begun, failed } = await openRefundable();
    expect(await askBack(BOUGHT, {}, wrong)).toBe(refusal);
    expect([begun(), failed]).toEqual([0, [BUYER]]);
  });

  test('is in this order: the payload, the identifier, whether its client must wait, the terms', async () => {
    const { ask, askBack, refund, of, failOften, failed } = await openRefundable();
    await failOften();
    const wrong = { accepted: { network: 'eip155:1' } };
    const unread = refund(BOUGHT, { of, identifier: 'short', ...wrong });
    const payload = { ...unread.payload, amount: 'all' };
    expect(await ask({}, { ...unread, payload })).toBe('402 refund_payload');
    expect(await ask({}, unread)).toBe('400 payment_identifier_malformed, charged: false');
    expect(await askBack(BOUGHT, {}, wrong)).toBe('429 client_failures, charged: false');
    // Neither what cannot be read nor a malformed identifier is anybody's failure.
    expect(failed).toEqual([]);
  });

  test('is whether the key that signs for the channel must wait, wherever it asks from, and not its payer', async () => {
    const { ask, voucher, refund, bed, failed } = await openChannelSale();
    const of = bed.fund(1_000_000n, { payer: Buffer.alloc(20, 7) });
    const run = () => Promise.reject(new Error('away'));
    for (let time = 0; time < 3; time++) await ask({ run }, voucher(BOUGHT, { of }));
    expect(failed).toEqual(Array(3).fill(`${bytesToHex(of.config.payerAuthorizer)} at ${BUYER}`));
    const elsewhere = { client: '10.0.0.2' };
    expect(await ask(elsewhere, refund(0n, { of }))).toBe('429 payer_failures, charged: false');
  });

  test('counts a refused refund for the client, except over old charges', async () => {
    const { askBack, failed, script } = await openRefundable();
    await askBack(499n);
    script.cannotSend = 'no gas';
    await askBack();
    expect(failed).toEqual([]);
    script.cannotSend = null;
    await askBack(BOUGHT, {}, { amount: 1n });
    expect(failed).toEqual([BUYER]);
  });

  test('tells the last buyer by its identifier, too', async () => {
    const { ask, voucher, refund, bed, see, clock } = await openChannelSale();
    const identifier = 'identifier-000001';
    const of = await bed.open(1_000_000n);
    await ask({}, voucher(BOUGHT, { of, identifier }));
    const from = { client: '10.6.6.6' };
    for (let time = 0; time < 3; time++) {
      expect(await ask(from, refund(BOUGHT, { of, identifier }))).toBe('refunded');
      await clock.advance(600_000);
      await see({ balance: 1_000_000n }, of);
    }
    expect(await ask(from, refund(BOUGHT, { of }))).toBe('refunded');
    await clock.advance(600_000);
    await see({ balance: 1_000_000n }, of);
    expect(await ask(from, refund(BOUGHT, { of }))).toBe(TOO_SOON);
  });
});
