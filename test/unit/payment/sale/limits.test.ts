import { describe, expect, test } from 'vitest';
import { type AppError, TooMany, Unavailable, UpstreamFailed } from '../../../../src/errors.ts';
import { PaymentRefused } from '../../../../src/payment/refusal.ts';
import { REVERTED } from '../../../../src/payment/settler.ts';
import {
  CHAIN_AWAY,
  CLIENT,
  LACKS_MONEY,
  NO_LIMITS,
  openSale,
  PRICE,
  REPLY_BYTES,
} from '../../../support/payment/sale-world.ts';
import { newKey } from '../../../support/usdc/payments.ts';

const OTHER = '192.0.2.2';
const BUSY = new Unavailable('upstream_busy', 'busy');
const NOT_SIGNED = new PaymentRefused('invalid_exact_evm_signature');
const MANY_CONTRACTS = new TooMany('contract_signatures', 'wait', 1);
const UNANSWERED = new Unavailable('settlement_unavailable', 'no answer');

type Says = Partial<ReturnType<typeof openSale>['says']>;
interface Failing {
  readonly says: Says;
  readonly failure: AppError | null;
  /** Whether each try is of another payer. */
  readonly isEachNew?: boolean;
}

describe('before anything is spent on a payment', () => {
  type Prepare = (world: ReturnType<typeof openSale>) => unknown;
  test.each<[string, Prepare, object]>([
    [
      'of a client that failed too often',
      ({ failures }) => {
        for (let at = 0; at < 5; at++) failures.note(newKey().address, CLIENT);
      },
      { status: 429, code: 'client_failures', retryAfterSeconds: 60 },
    ],
    [
      'of a payer that the settler refuses',
      ({ says }) => {
        says.refuses = 'its payments cost gas';
      },
      { status: 429, code: 'payer_refused', retryAfterSeconds: 3600 },
    ],
    [
      'while nothing can be settled',
      ({ says }) => {
        says.shortage = 'the relayer is short of gas';
      },
      { status: 503, code: 'settlement_unavailable' },
    ],
    [
      'of a new payer by a client whose settlements failed',
      ({ failures }) => failures.beginSettlement('some payer', CLIENT)(true),
      { status: 429, code: 'client_refused', retryAfterSeconds: 86_400 },
    ],
  ])('one %s is refused', async (_, prepare, refusal) => {
    const world = openSale();
    const { sell, asked, rows, latch } = world;
    prepare(world);
    expect(await sell()).toMatchObject({ ...refusal, charged: false });
    expect([asked.slice(0, 2), asked.includes('signature')]).toEqual([['row', 'terms'], false]);
    expect([await rows(), latch.runs()]).toEqual([0, 0]);
  });

  test('one is refused while no reply can be kept', async () => {
    const { sell, asked, rows, latch } = openSale({ storeBytes: 0 });
    const refusal = { status: 503, code: 'reply_store_full', retryAfterSeconds: 30, charged: false };
    expect(await sell()).toMatchObject(refusal);
    expect([asked, await rows(), latch.runs()]).toEqual([['row', 'terms'], 0, 0]);
  });

  test('a client that must wait keeps no other client waiting', async () => {
    const { sell, failures } = openSale();
    for (let at = 0; at < 5; at++) failures.note(newKey().address, CLIENT);
    expect(await sell({ client: OTHER })).toHaveProperty('answer');
  });

  test('payers that have paid before are taken from a client whose settlements failed, and new ones from others', async () => {
    const { sell, sign, failures } = openSale();
    const key = newKey();
    await sell({}, sign({ key }));
    failures.beginSettlement('some payer', CLIENT)(true);
    expect(await sell({}, sign({ key }))).toHaveProperty('answer');
    expect(await sell({ client: OTHER })).toHaveProperty('answer');
  });
});

test('a payer who has too much open is refused, and may try again in a second', async () => {
  const { sell, sign, latch } = openSale({ maxOpen: 1 });
  const key = newKey();
  latch.close();
  const started = latch.started();
  const first = sell({}, sign({ key }));
  await started;
  const refusal = { status: 429, code: 'payer_open_payments', retryAfterSeconds: 1, charged: false };
  expect(await sell({}, sign({ key }))).toMatchObject(refusal);
  latch.open();
  expect(await first).toHaveProperty('answer');
});

test('a reply that does not fit in the reply store is not sold, and that is no failure of the buyer’s', async () => {
  const { sell, sign, row, failures } = openSale({ storeBytes: REPLY_BYTES - 1 });
  const payment = sign();
  const error = await sell({}, payment);
  expect(error).toBeInstanceOf(Unavailable);
  expect(error).toMatchObject({ status: 503, code: 'reply_store_full', charged: false, retryAfterSeconds: 30 });
  expect([await row(payment), failures.hasFailed(CLIENT)]).toEqual([null, false]);
});

describe('a call that fails uncharged', () => {
  /** How many payments fail in this way before the code answers in their place; null: as many as one likes. */
  async function triesBefore(code: string, { says, failure, isEachNew = false }: Failing): Promise<number | null> {
    const world = openSale();
    Object.assign(world.says, says);
    if (failure) world.moody.fail(failure);
    const key = newKey();
    for (let tries = 0; tries < 12; tries++) {
      const payment = world.sign({ of: world.moody, key: isEachNew ? newKey() : key });
      if ((await world.sell({ of: world.moody }, payment)).code === code) return tries;
    }
    return null;
  }

  type Case = [
    whom: string,
    why: string,
    says: Says,
    failure: AppError | null,
    payer: number | null,
    client: number | null,
  ];
  test.each<Case>([
    ['the client alone', 'the payer did not sign', { signature: NOT_SIGNED }, null, null, 5],
    ['the client alone', 'contracts were asked too often', { signature: MANY_CONTRACTS }, null, null, 5],
    ['the client alone', 'a contract could not be asked in the end', { signature: UNANSWERED }, null, null, 5],
    ['nobody', 'the service had no time to ask for a signature', { signature: BUSY }, null, null, null],
    ['nobody', 'the chain could not be asked for a signature', { signature: CHAIN_AWAY }, null, null, null],
    ['payer and client', 'the payer lacks the money', { payer: LACKS_MONEY }, null, 3, 5],
    ['nobody', 'the payer could not be read', { payer: CHAIN_AWAY }, null, null, null],
    ['payer and client', 'the payment could not be settled', { verify: LACKS_MONEY }, null, 3, 5],
    ['nobody', 'the chain could not say whether it can', { verify: CHAIN_AWAY }, null, null, null],
    ['nobody', 'the check had to wait for its turn', { verify: MANY_CONTRACTS }, null, null, null],
    ['nobody', 'the service had no time for the check', { verify: BUSY }, null, null, null],
    ['payer and client', 'the endpoint failed after the checks', {}, new UpstreamFailed('test', 'moody'), 3, 5],
    ['nobody', 'the service was short of something after the checks', {}, BUSY, null, null],
  ])('counts against %s where %s', async (_whom, _why, says, failure, ofPayer, ofClient) => {
    expect(await triesBefore('payer_failures', { says, failure })).toBe(ofPayer);
    expect(await triesBefore('client_failures', { says, failure, isEachNew: true })).toBe(ofClient);
  });

  test('writes nothing where the payer lacks the money', async () => {
    const { sell, says, asked, rows } = openSale();
    says.payer = LACKS_MONEY;
    expect(await sell()).toMatchObject({ name: 'PaymentRefused', reason: LACKS_MONEY.reason });
    expect([asked.includes('reserve'), await rows()]).toEqual([false, 0]);
  });
});

describe('payments whose outcome is unknown', () => {
  const WAITING = { status: 429, code: 'unknown_payments', charged: false, retryAfterSeconds: 10 };
  const openUnknown = () => {
    const world = openSale();
    world.says.settles = 'unknown';
    return world;
  };

  test('of one payer end its new purchases at the limit, and none of another payer’s', async () => {
    const { sell, sign, says, asked, latch, failures } = openUnknown();
    const key = newKey();
    for (let at = 0; at < 2; at++) expect(await sell({}, sign({ key }))).toMatchObject({ status: 503 });
    asked.length = 0;
    expect(await sell({}, sign({ key }))).toMatchObject(WAITING);
    expect([asked.slice(0, 2), asked.includes('signature'), latch.runs()]).toEqual([['row', 'terms'], false, 2]);
    // To have to wait is no failure.
    expect(failures.hasFailed(CLIENT)).toBe(false);
    says.settles = PRICE;
    expect(await sell()).toHaveProperty('answer');
  });

  test('of one client end its new purchases at the limit, whatever payers it names', async () => {
    const { sell, says } = openUnknown();
    for (let at = 0; at < 3; at++) await sell();
    expect(await sell()).toMatchObject(WAITING);
    says.settles = PRICE;
    expect(await sell({ client: OTHER })).toHaveProperty('answer');
  });

  test('are counted for a /48 as well, which may have four times as many as a client', async () => {
    const { sell } = openUnknown();
    const statuses: unknown[] = [];
    for (let at = 0; at < 12; at++)
      statuses.push((await sell({ client: `2001:db8:1:${at.toString(16)}::/64` })).status);
    expect(statuses).toEqual(Array(12).fill(503));
    expect(await sell({ client: '2001:db8:1:c::/64' })).toMatchObject(WAITING);
    expect(await sell({ client: '2001:db8:2:1::/64' })).toMatchObject({ status: 503 });
  });

  test('are never refused their own answer, and free their places when they end', async () => {
    const { sell, sign, says, clock } = openUnknown();
    const key = newKey();
    const [first, second, next] = [sign({ key }), sign({ key }), sign({ key })];
    for (const payment of [first, second]) await sell({}, payment);
    expect(await sell({}, next)).toMatchObject(WAITING);
    [says.looksUp, says.settles] = [PRICE, PRICE];
    expect(await sell({}, first)).toHaveProperty('answer');
    // Their rows are read again once a second.
    expect(await sell({}, next)).toMatchObject(WAITING);
    await clock.advance(1000);
    expect(await sell({}, next)).toHaveProperty('answer');
  });
});

describe('a settlement that moved nothing', () => {
  test('takes no place among the payments whose outcome is unknown', async () => {
    const { sell, sign, says } = openSale({ limits: NO_LIMITS });
    const key = newKey();
    const [ended, open] = [sign({ key }), sign({ key })];
    says.settles = 'unknown';
    for (const payment of [ended, open]) await sell({}, payment);
    says.looksUp = PRICE;
    expect(await sell({}, ended)).toHaveProperty('answer');
    // Their rows are read for this one, and not again within a second.
    says.settles = 'reverted';
    expect(await sell({}, sign({ key }))).toMatchObject({ reason: REVERTED });
    says.settles = PRICE;
    expect(await sell({}, sign({ key }))).toHaveProperty('answer');
  });

  test.each([
    ['was sent: it has cost gas, and the client brings no new payers for a day', 'reverted', 86_400],
    ['was not sent: it has cost no gas, and new payers are taken', 'not sent', 0],
  ] as const)('counts against payer and client; it %s', async (_, settles, waitSeconds) => {
    const { sell, sign, says, failures } = openSale();
    says.settles = settles;
    const key = newKey();
    expect(await sell({}, sign({ key }))).toMatchObject({ reason: REVERTED, settlement: { success: false } });
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(waitSeconds);
    for (let at = 0; at < 2; at++) failures.note(key.address, CLIENT);
    const detail = 'too many of this payer’s calls failed uncharged; wait a little';
    expect(failures.refusal(key.address, CLIENT)).toMatchObject({ code: 'payer_failures', detail });
  });

  test.each(['unknown', new Error('the disk is away')] as const)(
    'counts against nobody while that is open: %s',
    async (settles) => {
      const { sell, sign, says, failures } = openSale({ limits: { payer: 1, client: 1, clientSettlements: 1 } });
      says.settles = settles;
      const key = newKey();
      expect(await sell({}, sign({ key }))).toMatchObject({ code: 'settlement_unknown', charged: 'unknown' });
      expect([failures.refusal(key.address, CLIENT), failures.newPayersAfterSeconds(CLIENT)]).toEqual([null, 0]);
    },
  );

  test('counts with those that are under way, so that a burst does not pass the limit', async () => {
    const { sell, says, hold, failures } = openSale({ limits: { payer: 0, client: 0, clientSettlements: 2 } });
    says.settles = 'reverted';
    await sell();
    const { arrived, go } = hold('settle');
    const slow = sell();
    await arrived;
    expect(failures.newPayersAfterSeconds(CLIENT)).toBeGreaterThan(0);
    says.settles = PRICE;
    go();
    await slow;
    expect(failures.newPayersAfterSeconds(CLIENT)).toBe(0);
  });
});
