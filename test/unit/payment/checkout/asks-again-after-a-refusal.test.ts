import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/errors.ts';
import {
  LIGHTNING_ROUTE,
  LIGHTNING_TOOL,
  named,
  USDC_ROUTE,
  USDC_TOOL,
  WAYS,
} from '../../../support/payment/checkout-calls.ts';
import { CHANNELS, openCheckouts, PAYMENTS, PLAIN, TOOL, UNREADABLE } from '../../../support/payment/checkout-world.ts';
import { PLAIN_RAILS, TERMS } from '../../../support/service/terms.ts';

const NETWORK = TERMS.network as `${string}:${string}`;
const EXPIRED = { detail: 'The authorization has expired. Sign a new one.' };
const NOT_OFFERED = 'No matching payment requirements';
const REFUSED = `The payment for ${TOOL} was refused, and this call was not charged.`;
const NO_PAYMENT = 'No new payment can be asked for now: make the same call again later.';
/** The receipt that goes with each refusal over Lightning. */
const saying = (errorReason: string) => ({
  success: false,
  errorReason,
  transaction: '',
  network: PAYMENTS.lightning.accepted.network,
});

describe.each(WAYS)('%s', (_name, way) => {
  const payment = PAYMENTS[way.money];
  const withoutOffer = { rails: { ...PLAIN_RAILS, exactFrom: null } };

  test('answers a refused payment with the reason and a new offer, which no cache may keep', async () => {
    const world = await openCheckouts();
    const asked = await world.call(way);
    world.refuses('expired', EXPIRED);
    const answer = await world.call(way, { payment });
    expect([answer.status, answer.error, answer.url]).toEqual([402, 'expired', asked.url]);
    expect(answer.accepts).toHaveLength(asked.accepts?.length ?? 0);
    if (way.at === 'route') expect(answer.headers['cache-control']).toBe('no-store');
    // The invoice of the open offer may be the one that this buyer has paid.
    if (way.money === 'usdc') expect(answer.accepts).toEqual(asked.accepts);
    else expect(answer.accepts?.[0]?.extra.invoice).not.toBe(asked.accepts?.[0]?.extra.invoice);
  });

  test('tells who counts them each payment that got no answer, once, and no other call', async () => {
    const world = await openCheckouts();
    await world.call(way);
    await world.call(way, { payment: await world.buy(way) });
    expect(world.refusals).toEqual([]);
    world.refuses('expired');
    await world.call(way, { payment });
    world.fails(new AppError(503, 'busy', 'x'));
    await world.call(way, { payment });
    await world.call(way, { payment: UNREADABLE[way.money] });
    const unreadable = expect.objectContaining({ name: 'PaymentRefused' });
    const [expired, busy] = [{ reason: 'expired' }, { code: 'busy' }].map((one) => expect.objectContaining(one));
    expect(world.refusals).toEqual([expired, busy, unreadable]);
  });

  test('says in words why it refused the payment, and what a new one costs', async () => {
    const world = await openCheckouts();
    world.refuses('expired', EXPIRED);
    const { words } = await world.call(way, { payment });
    if (way.at === 'tool') expect(words).toContain(`${REFUSED} ${EXPIRED.detail} A new payment costs `);
    else expect(words).toContain(`${EXPIRED.detail} This answer costs `);
    world.refuses('odd');
    expect((await world.call(way, { payment })).words).toContain('The payment was refused: odd.');
  });

  test('has a receipt of a refusal over Lightning always, and in USDC only where a settlement was refused', async () => {
    const world = await openCheckouts();
    world.refuses('expired');
    expect((await world.call(way, { payment })).receipt).toEqual(way.money === 'usdc' ? null : saying('expired'));
    const settlement = { success: false, errorReason: 'reverted', transaction: '', network: NETWORK };
    world.refuses('reverted', { settlement });
    const { receipt } = await world.call(way, { payment });
    expect(receipt).toEqual(way.money === 'usdc' ? settlement : saying('reverted'));
  });

  test('refuses a payment that cannot be read without asking the rail', async () => {
    const world = await openCheckouts();
    const { status, error, accepts, receipt } = await world.call(way, { payment: UNREADABLE[way.money] });
    expect([status, error, world.sales]).toEqual([402, 'invalid_payload', []]);
    expect(accepts).not.toEqual([]);
    expect(receipt).toEqual(way.money === 'usdc' ? null : saying('invalid_payload'));
  });

  test('refuses with the reason also where no offer can be made', async () => {
    const world = await openCheckouts(withoutOffer);
    world.fillReplyStore();
    world.refuses('expired', EXPIRED);
    const { status, error, accepts, words, body } = await world.call(way, { payment });
    expect([status, error, accepts]).toEqual([402, 'expired', []]);
    if (way.at === 'tool') expect(words).toBe(`${REFUSED} ${EXPIRED.detail} ${NO_PAYMENT}`);
    if (way !== LIGHTNING_ROUTE) return;
    expect(words).toContain(`${EXPIRED.detail} No new invoice could be made; ask again without a payment.`);
    expect(JSON.parse(body)).toMatchObject({ priceUsd: '0.016', btcUsd: null });
  });
});

test.each(named(USDC_ROUTE, USDC_TOOL))(
  '%s corrects its entry of the refused scheme, and no other',
  async (_name, way) => {
    const world = await openCheckouts({ rails: CHANNELS });
    world.channelsFound(true);
    const { accepts: [plain, channel] = [] } = await world.call(way);
    const extra = { chargedSoFar: '7' };
    world.refuses('stale', { correction: { scheme: 'batch-settlement', extra, isForgiven: false } });
    const { accepts } = await world.call(way, { payment: PAYMENTS.usdc });
    expect(accepts).toEqual([plain, { ...channel, extra: { ...channel?.extra, ...extra } }]);
  },
);

test('a route in USDC names after the refusal what is wrong with the parameters', async () => {
  const world = await openCheckouts();
  const { words } = await world.call(USDC_ROUTE, { params: { a: '1' }, payment: UNREADABLE.usdc });
  expect(words).toMatch(/^PAYMENT-SIGNATURE lacks or misspells payload\./);
  expect(words).toContain(
    ' b is missing, for example y. With a payment this request would be a 400, uncharged: mend it before you sign. This answer costs ',
  );
});

test('a tool that can make no invoice offers USDC', async () => {
  const world = await openCheckouts();
  world.fillReplyStore();
  world.refuses('expired', EXPIRED);
  const { accepts, receipt } = await world.call(LIGHTNING_TOOL, { payment: PAYMENTS.lightning });
  expect([accepts, receipt]).toEqual([[PLAIN], saying('expired')]);
  // Without a payment it was Lightning that was asked for, and the caller hears why there is none.
  expect(await world.call(LIGHTNING_TOOL)).toMatchObject({ status: 503, code: 'reply_store_full' });
});

test('a payment whose protocol knows no 402 without an offer gets the offer’s own error, the reason and the receipt', async () => {
  const world = await openCheckouts();
  const request = { headers: { authorization: `L402 AA==:${'0'.repeat(64)}` } };
  const again = await world.call(LIGHTNING_ROUTE, request);
  expect([again.status, again.error, again.accepts?.length]).toEqual([402, 'invalid_challenge', 1]);
  expect(again.headers['www-authenticate']).toEqual(expect.arrayContaining([expect.stringMatching(/^L402 /)]));
  world.fillReplyStore();
  const { status, code, detail, charged, receipt } = await world.call(LIGHTNING_ROUTE, request);
  expect([status, code, receipt]).toEqual([503, 'reply_store_full', saying('invalid_challenge')]);
  // The payment may be good for another request.
  expect(charged).toBe('unknown');
  expect(detail).toContain('invalid_challenge');
});

describe('a tool that is sold on one rail', () => {
  test.each([
    ['a payment', PAYMENTS],
    ['an unreadable payment', UNREADABLE],
  ])('refuses %s of the other unread, and offers what it has', async (_title, kind) => {
    const inUsdc = await openCheckouts({ endpoint: { onlyOn: 'paid' } });
    const refused = await inUsdc.call(USDC_TOOL, { payment: kind.lightning });
    expect([refused.status, refused.error, refused.accepts, refused.receipt]).toEqual([
      402,
      NOT_OFFERED,
      [PLAIN],
      null,
    ]);
    const inBitcoin = await openCheckouts({ endpoint: { onlyOn: 'lightning' } });
    const { status, error, accepts, receipt } = await inBitcoin.call(USDC_TOOL, { payment: kind.usdc });
    expect([status, error, receipt]).toEqual([402, NOT_OFFERED, saying(NOT_OFFERED)]);
    expect(accepts?.map(({ asset }) => asset)).toEqual(['BTC']);
    expect([inUsdc.sales, inUsdc.invoices(), inBitcoin.sales]).toEqual([[], [], []]);
  });

  test('has nothing to offer where its own rail has nothing', async () => {
    const world = await openCheckouts({ endpoint: { onlyOn: 'lightning' } });
    world.fillReplyStore();
    world.refuses('expired', EXPIRED);
    const { accepts, words } = await world.call(LIGHTNING_TOOL, { payment: PAYMENTS.lightning });
    expect([accepts, words]).toEqual([[], `${REFUSED} ${EXPIRED.detail} ${NO_PAYMENT}`]);
  });
});
