import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLedger, hashClient, hashRequest, type Ledger } from '../../../src/payment/ledger.ts';
import { REVERTED } from '../../../src/payment/settler.ts';
import type { LedgerStore } from '../../../src/store/ports/payments.ts';
import { gathered } from '../../support/gathered.ts';
import { openTestLedger, storesOf } from '../../support/ledger/fresh-ledger.ts';
import { hash32, reservation, sale, storedIntent } from '../../support/ledger/ledger-rows.ts';

let folder: string;
let store: LedgerStore;
let now = 1_800_000_000_000;
const clock = { nowMs: () => now, sleep: async () => {} };
const options = { clock, storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 3 };
const open = (bootId: string): Ledger => createLedger({ ...options, store, bootId });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-'));
  store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const payer = randomBytes(20);
const payment = (nonce = randomBytes(32), from: Uint8Array = payer) =>
  sale(nonce.toString('hex'), {
    payer: from,
    nonce,
    amount: 1000n,
    price: 1000n,
    requestHash: hashRequest('/v1/paid/x', { a: 1 }),
    clientHash: hashClient(nonce, '127.0.0.1'),
  });

describe('reservation', () => {
  test('of one authorization is won once, however it is raced', async () => {
    const ledger = open('a');
    const one = payment();
    const wins = await Promise.all(Array.from({ length: 20 }, () => ledger.reserve(one, false)));
    expect(wins.filter(Boolean)).toHaveLength(1);
  });

  test('frees the authorization when released, and the second id is another', async () => {
    const ledger = open('a');
    const one = payment();
    const first = await ledger.reserve(one, false);
    expect(await ledger.release(String(first))).toBe(true);
    const second = await ledger.reserve(one, false);
    expect(second).not.toBeNull();
    expect(second).not.toBe(first);
  });

  test('of a payer stops at the cap, and another payer is not touched by it', async () => {
    const ledger = open('a');
    for (let i = 0; i < 3; i++) expect(await ledger.reserve(payment(), false)).not.toBeNull();
    expect(await ledger.reserve(payment(), false)).toBeNull();
    expect(await ledger.reserve(payment(randomBytes(32), randomBytes(20)), false)).not.toBeNull();
  });

  test('knows what the payer promised before it', async () => {
    const ledger = open('a');
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(String(await ledger.reserve(payment(), false)));
    const before = await Promise.all(ids.map((id) => ledger.sumOfOpen(payment(), id)));
    expect(before).toEqual([0n, 1000n, 2000n]);
  });
});

describe('moves', () => {
  test('only legal ones happen', async () => {
    const ledger = open('a');
    const id = String(await ledger.reserve(payment(), false));
    expect(await ledger.settled(id, randomBytes(32), 9, 1000n)).toBe(false);
    expect(await ledger.failed(id, 'x')).toBe(false);
    expect(await ledger.unknown(id)).toBe(false);
    expect(await ledger.storeIntent(id, storedIntent())).toBe(true);
    expect(await ledger.storeIntent(id, storedIntent())).toBe(false);
    expect(await ledger.release(id)).toBe(false);
    expect(await ledger.unknown(id)).toBe(true);
    expect(await ledger.settled(id, randomBytes(32), 9, 1000n)).toBe(true);
    expect(await ledger.failed(id, 'x')).toBe(false);
    expect(await ledger.unknown(id)).toBe(false);
    expect((await ledger.get(id))?.state).toBe('settled');
  });

  test('an ended payment has no signature left, in the row or in the file', async () => {
    const ledger = open('a');
    const [first, second] = [storedIntent(), storedIntent()];
    const ids = [String(await ledger.reserve(payment(), false)), String(await ledger.reserve(payment(), false))];
    await ledger.storeIntent(String(ids[0]), first);
    await ledger.storeIntent(String(ids[1]), second);
    expect((await ledger.get(String(ids[0])))?.signature).toEqual(first.signature);
    await ledger.settled(String(ids[0]), randomBytes(32), 9, 1000n);
    await ledger.failed(String(ids[1]), 'gone');
    for (const id of ids) expect((await ledger.get(id))?.signature).toBeNull();
    await store.close();
    const bytes = readFileSync(join(folder, 'ledger.db'));
    expect(bytes.includes(Buffer.from(first.signature))).toBe(false);
    expect(bytes.includes(Buffer.from(second.signature))).toBe(false);
    store = storesOf(openTestLedger(join(folder, 'ledger.db'))).payments;
  });

  test('a reverted payment may be reserved again, and falls back to failed when that fails; another failure may not', async () => {
    const ledger = open('a');
    const [reverted, cancelled] = [payment(), payment()];
    for (const [one, reason] of [
      [reverted, REVERTED],
      [cancelled, 'cancelled'],
    ] as const) {
      const id = String(await ledger.reserve(one, false));
      await ledger.storeIntent(id, storedIntent());
      await ledger.failed(id, reason);
    }
    expect(await ledger.reserve(cancelled, false)).toBeNull();
    expect(await ledger.reserve(cancelled, true)).toBeNull();
    const again = String(await ledger.reserve(reverted, true));
    expect((await ledger.get(again))?.checkedBlock).toBe(7);
    await ledger.release(again);
    expect((await ledger.find(reverted))?.state).toBe('failed');
  });

  test('a reverted payment is reused only with the very same authorization, and then for what its new request costs', async () => {
    const ledger = open('a');
    const reverted = payment();
    const id = String(await ledger.reserve(reverted, false));
    await ledger.storeIntent(id, storedIntent());
    await ledger.failed(id, REVERTED);
    expect(await ledger.reserve({ ...reverted, authorizationHash: hash32('another signature') }, true)).toBeNull();
    expect(await ledger.find(reverted)).toMatchObject({ id, state: 'failed' });
    const requestHash = hashRequest('/v1/paid/y', {});
    const again = await ledger.reserve({ ...reverted, price: 800n, requestHash }, true);
    expect(await ledger.get(String(again))).toMatchObject({
      state: 'reserved',
      price: 800n,
      amount: 1000n,
      requestHash,
    });
  });

  test('what is learned of a payment on its way is in its row: code at the payer, and what the evidence says was paid', async () => {
    const ledger = open('a');
    const [plain, wallet] = [
      String(await ledger.reserve(payment(), false)),
      String(await ledger.reserve(payment(), false)),
    ];
    expect(await ledger.get(plain)).toMatchObject({ payerHasCode: null, charged: null, price: 1000n });
    await ledger.storeIntent(plain, storedIntent());
    await ledger.storeIntent(wallet, storedIntent('reply', { payerHasCode: true }));
    expect([(await ledger.get(plain))?.payerHasCode, (await ledger.get(wallet))?.payerHasCode]).toEqual([false, true]);
    await ledger.settled(plain, randomBytes(32), 9, 999n);
    expect(await ledger.get(plain)).toMatchObject({ charged: 999n, reason: null, block: 9 });
    await ledger.failed(wallet, 'gone');
    expect(await ledger.get(wallet)).toMatchObject({ charged: null, reason: 'gone' });
  });

  test('a payer has settled here once one of its payments has, and no sooner', async () => {
    const ledger = open('a');
    const [one, other] = [payment(), payment(randomBytes(32), randomBytes(20))];
    const id = String(await ledger.reserve(one, false));
    const failed = String(await ledger.reserve(other, false));
    for (const each of [id, failed]) await ledger.storeIntent(each, storedIntent());
    await ledger.failed(failed, 'gone');
    expect(await ledger.hasSettled(one)).toBe(false);
    await ledger.settled(id, randomBytes(32), 9, 1000n);
    expect(await ledger.hasSettled(payment())).toBe(true);
    expect(await ledger.hasSettled(other)).toBe(false);
    expect(await ledger.hasSettled({ ...one, network: 'eip155:1' })).toBe(false);
    expect(await ledger.hasSettled({ ...one, contract: randomBytes(20) })).toBe(false);
  });
});

describe('a reservation that its own process gives up', () => {
  test.each(['reserved', 'settling'] as const)(
    'is forgotten while it is %s: the authorization may buy again',
    async (state) => {
      const ledger = open('a');
      const one = payment();
      const id = String(await ledger.reserve(one, false));
      if (state === 'settling') await ledger.storeIntent(id, storedIntent());
      expect((await ledger.get(id))?.state).toBe(state);
      expect(await ledger.abandon(id)).toBe(true);
      expect(await ledger.find(one)).toBeNull();
      expect(await ledger.abandon(id)).toBe(false);
    },
  );

  test('is kept once its transaction is noted, or its outcome is open', async () => {
    const ledger = open('a');
    for (const open of ['noted', 'unknown']) {
      const id = String(await ledger.reserve(payment(), false));
      await ledger.storeIntent(id, storedIntent());
      if (open === 'noted') await ledger.noteBroadcast([{ id, transaction: randomBytes(32) }]);
      else await ledger.unknown(id);
      expect(await ledger.abandon(id)).toBe(false);
    }
  });
});

test('each move is reported once, after it is on disk, and a move that did not happen is not reported', async () => {
  const got: string[] = [];
  const count = createLedger({ ...options, store, bootId: 'a', onMove: (id, to) => void got.push(`${to} ${id}`) });
  const reserve = async () => String(await count.reserve(payment(randomBytes(32), randomBytes(20)), false));
  const [paid, open, given, left] = [await reserve(), await reserve(), await reserve(), await reserve()];
  const names = [paid, open, given, left].map((id) => `reserved ${id}`);
  for (const id of [paid, open]) await count.storeIntent(id, storedIntent());
  await count.settled(paid, randomBytes(32), 9, 1000n);
  await count.unknown(open);
  await count.failed(open, 'gone');
  await count.release(given);
  await count.abandon(left);
  // None of these is legal now.
  await count.settled(paid, randomBytes(32), 9, 1000n);
  await count.release(paid);
  expect(got).toEqual([
    ...[...names, `settling ${paid}`, `settling ${open}`, `settled ${paid}`, `unknown ${open}`, `failed ${open}`],
    ...[`released ${given}`, `released ${left}`],
  ]);
});

test('the moves of a recovery are reported as well', async () => {
  const dead = open('dead');
  const ids = [String(await dead.reserve(payment(), false)), String(await dead.reserve(payment(), false))];
  await dead.storeIntent(String(ids[1]), storedIntent());
  await dead.noteBroadcast([{ id: String(ids[1]), transaction: randomBytes(32) }]);
  const got: string[] = [];
  const living = createLedger({ ...options, store, bootId: 'b', onMove: (id, to) => void got.push(`${to} ${id}`) });
  await living.recover();
  expect(got).toEqual([`released ${ids[0]}`, `unknown ${ids[1]}`]);
});

test('a client shows as another in each of its payments, and as itself in one', () => {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  expect(hashClient(one, '127.0.0.1')).toEqual(hashClient(one, '127.0.0.1'));
  expect(hashClient(one, '127.0.0.1')).not.toEqual(hashClient(one, '127.0.0.2'));
  expect(hashClient(one, '127.0.0.1')).not.toEqual(hashClient(other, '127.0.0.1'));
});

describe('what the evidence says of a payment that reverted', () => {
  test('takes the place of why it failed, so that it is never reused; what has not failed stays as it is', async () => {
    const ledger = open('a');
    const [reverted, waiting] = [payment(), payment()];
    const ids = [String(await ledger.reserve(reverted, false)), String(await ledger.reserve(waiting, false))];
    for (const id of ids) await ledger.storeIntent(id, storedIntent());
    await ledger.failed(String(ids[0]), REVERTED);
    expect([await ledger.ruleOut(String(ids[0]), 'used'), await ledger.ruleOut(String(ids[1]), 'used')]).toEqual([
      true,
      false,
    ]);
    expect(await ledger.find(reverted)).toMatchObject({ state: 'failed', reason: 'used' });
    expect(await ledger.find(waiting)).toMatchObject({ state: 'settling', reason: null });
    expect(await ledger.reserve(reverted, true)).toBeNull();
  });
});

describe('the hash of a request', () => {
  const hash = (params: object) => Buffer.from(hashRequest('/v1/paid/x', params)).toString('hex');

  test('does not depend on the order of its parameters, and is the one that rows on disk have', () => {
    const stored = createHash('sha256').update('["/v1/paid/x",[["a",1],["b",2],["c",3]]]').digest('hex');
    expect([hash({ a: 1, b: 2, c: 3 }), hash({ c: 3, a: 1, b: 2 }), hash({ b: 2, c: 3, a: 1 })]).toEqual(
      Array(3).fill(stored),
    );
  });

  test('is another for another route, parameter or value', () => {
    const all = [hash({ a: 1 }), hash({ a: 2 }), hash({ b: 1 }), hash({}), hash({ a: '1' })];
    expect(new Set(all).size).toBe(all.length);
    expect(hashRequest('/v1/paid/y', { a: 1 })).not.toEqual(hashRequest('/v1/paid/x', { a: 1 }));
  });
});

describe('the list of what has not ended', () => {
  /** Rows straight into the store, because a page holds more of them than a test has time for one by one. */
  async function fill(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, at) => `row ${String(at).padStart(6, '0')}`);
    await Promise.all(ids.map((id) => store.reserve(reservation(id, id), 0, null)));
    return ids;
  }

  test.each([499, 500, 501, 1100])('of %i payments names each of them once, oldest first', async (count) => {
    const ids = await fill(count);
    const listed = await gathered(open('a').unfinished());
    expect(listed.map(({ id }) => id)).toEqual(ids);
  });

  test('goes on after a given payment, and holds no ended one', async () => {
    const ids = await fill(6);
    const ledger = open('a');
    await store.move(String(ids[1]), ['reserved'], 'settling', {});
    await store.move(String(ids[4]), ['reserved'], 'settling', {});
    await store.move(String(ids[3]), ['reserved'], 'settled', {});
    await store.move(String(ids[5]), ['reserved'], 'failed', { reason: 'gone' });
    await store.move(String(ids[4]), ['settling'], 'unknown', {});
    expect((await gathered(ledger.unfinished())).map(({ id }) => id)).toEqual([ids[0], ids[1], ids[2], ids[4]]);
    expect((await gathered(ledger.unfinished(ids[1]))).map(({ id }) => id)).toEqual([ids[2], ids[4]]);
    expect(await gathered(ledger.unfinished(ids[4]))).toEqual([]);
  });

  test('of intents that wait for their first settlement has no reservation, nothing noted and nothing that failed before', async () => {
    const ledger = open('a');
    const [waiting, noted, reserved] = [payment(), payment(), payment()];
    const ids: string[] = [];
    for (const one of [waiting, noted, reserved]) ids.push(String(await ledger.reserve(one, false)));
    for (const id of ids.slice(0, 2)) await ledger.storeIntent(id, storedIntent());
    await ledger.noteBroadcast([{ id: String(ids[1]), transaction: randomBytes(32) }]);
    const reverted = payment(randomBytes(32), randomBytes(20));
    const first = String(await ledger.reserve(reverted, false));
    await ledger.storeIntent(first, storedIntent());
    await ledger.failed(first, REVERTED);
    await ledger.storeIntent(String(await ledger.reserve(reverted, true)), storedIntent());
    expect((await gathered(ledger.waiting())).map(({ id }) => id)).toEqual([ids[0]]);
  });
});

describe('replies', () => {
  const settled = async (ledger: Ledger, body: string): Promise<string> => {
    const id = String(await ledger.reserve(payment(randomBytes(32), randomBytes(20)), false));
    expect(await ledger.storeIntent(id, storedIntent(body))).toBe(true);
    await ledger.settled(id, randomBytes(32), 9, 1000n);
    return id;
  };

  test('are delivered five times at most', async () => {
    const ledger = open('a');
    const id = await settled(ledger, 'bytes');
    for (let i = 0; i < 5; i++) expect(String(Buffer.from((await ledger.redeliver(id)) ?? []))).toBe('bytes');
    expect(await ledger.redeliver(id)).toBeNull();
  });

  test('are kept for a week until their first delivery, and from it for the time of redelivery', async () => {
    const ledger = open('a');
    const [id, other] = [await settled(ledger, 'bytes'), await settled(ledger, 'bytes')];
    now += 7 * 86_400_000 - 1;
    expect(await ledger.redeliver(id)).not.toBeNull();
    expect([await ledger.delivered(id), await ledger.delivered(id)]).toEqual([true, false]);
    now += 1;
    expect([await ledger.redeliver(other), await ledger.redeliver(id)]).toMatchObject([null, expect.anything()]);
    now += 900_000 - 1;
    expect(await ledger.redeliver(id)).toBeNull();
  });

  test('that were not delivered in the time of redelivery fill half of the store at the most: the oldest are deleted first', async () => {
    const ledger = open('a');
    const old = [];
    for (let at = 0; at < 3; at++) {
      old.push(await settled(ledger, 'x'.repeat(300)));
      now += 1;
    }
    await ledger.purge();
    expect(await store.replyBytes()).toBe(900);
    now += 900_000;
    await ledger.purge();
    expect(await store.replyBytes()).toBe(300);
    expect(await Promise.all(old.map((id) => ledger.redeliver(id)))).toMatchObject([null, null, expect.anything()]);
  });

  test('are gone after their time, and the row stays', async () => {
    const ledger = open('a');
    const id = await settled(ledger, 'bytes');
    await ledger.delivered(id);
    now += 900_001;
    expect(await ledger.redeliver(id)).toBeNull();
    await ledger.purge();
    expect(await store.replyBytes()).toBe(0);
    expect((await ledger.get(id))?.state).toBe('settled');
  });

  test('are bounded in bytes: what does not fit is not stored and nothing is thrown out', async () => {
    const ledger = open('a');
    const id = await settled(ledger, 'x'.repeat(900));
    const next = String(await ledger.reserve(payment(), false));
    expect(await ledger.storeIntent(next, storedIntent('y'.repeat(200)))).toBe(false);
    expect((await ledger.get(next))?.state).toBe('reserved');
    expect(await ledger.redeliver(id)).not.toBeNull();
    await settled(ledger, 'z'.repeat(100));
    expect(ledger.hasRoom()).toBe(false);
    now += 900_001;
    await ledger.purge();
    expect(ledger.hasRoom()).toBe(true);
  });
});

describe('the quota for replies', () => {
  test('is not used up by a reply whose reservation is gone', async () => {
    const ledger = open('a');
    const gone = String(await ledger.reserve(payment(), false));
    await ledger.release(gone);
    expect(await ledger.storeIntent(gone, storedIntent('x'.repeat(900)))).toBe(false);
    const id = String(await ledger.reserve(payment(), false));
    expect(await ledger.storeIntent(id, storedIntent('y'.repeat(1000)))).toBe(true);
    expect(ledger.hasRoom()).toBe(false);
  });

  test('is shared by the processes of one store: each uses its part of what was left at the last count', async () => {
    let sharers = 4;
    const ledger = createLedger({ ...options, store, bootId: 'a', sharedBy: () => sharers });
    const stores = async (bytes: number) =>
      ledger.storeIntent(
        String(await ledger.reserve(payment(randomBytes(32), randomBytes(20)), false)),
        storedIntent('x'.repeat(bytes)),
      );
    expect([await stores(251), await stores(200), await stores(51)]).toEqual([false, true, false]);
    await ledger.purge();
    // 800 are left, a quarter of which is 200.
    expect([await stores(201), await stores(200), await stores(1)]).toEqual([false, true, false]);
    sharers = 1;
    await ledger.purge();
    expect([await stores(601), await stores(600), await stores(1)]).toEqual([false, true, false]);
  });
});

test('recovery leaves a paused process its rows when that process resumes during the take-over', async () => {
  const asleep = open('asleep');
  await asleep.reserve(payment(), false);
  await asleep.reserve(payment(), false);
  const awake: string[] = [];
  const sold = payment();
  const wakeUp = () => {
    awake.push('asleep');
    return true;
  };
  expect(await open('living').recover(() => awake, wakeUp)).toEqual({ released: 0, unknown: 0 });
  expect(await asleep.reserve(sold, false)).not.toBeNull();
  expect(await open('living').recover(() => awake)).toEqual({ released: 0, unknown: 0 });
  expect((await asleep.find(sold))?.state).toBe('reserved');
});

test('recovery releases rows that were never sent, takes over the rest, and leaves rows of living processes alone', async () => {
  const dead = open('dead');
  const [reserved, unsent, sent, ended] = [payment(), payment(), payment(), payment(randomBytes(32), randomBytes(20))];
  await dead.reserve(reserved, false);
  const unsentId = String(await dead.reserve(unsent, false));
  await dead.storeIntent(unsentId, storedIntent());
  const sentId = String(await dead.reserve(sent, false));
  await dead.storeIntent(sentId, storedIntent());
  await dead.noteBroadcast([{ id: sentId, transaction: randomBytes(32) }]);
  const endedId = String(await dead.reserve(ended, false));
  await dead.storeIntent(endedId, storedIntent());
  await dead.settled(endedId, randomBytes(32), 9, 1000n);
  const living = open('living');
  const mine = payment(randomBytes(32), randomBytes(20));
  await living.reserve(mine, false);

  expect(await living.recover()).toEqual({ released: 2, unknown: 1 });
  expect(await living.find(reserved)).toBeNull();
  expect(await living.find(unsent)).toBeNull();
  expect((await living.find(sent))?.state).toBe('unknown');
  expect((await living.find(ended))?.state).toBe('settled');
  expect((await living.find(mine))?.state).toBe('reserved');
});

test('recovery takes over a row that stands behind more than a thousand rows of a process that may live', async () => {
  const [starting, dead] = [open('starting'), open('dead')];
  await Promise.all(
    Array.from({ length: 1200 }, () => starting.reserve(payment(randomBytes(32), randomBytes(20)), false)),
  );
  // Rows are read in the order of their times.
  now += 1;
  const left = payment();
  await dead.reserve(left, false);
  const isDead = ({ bootId }: { bootId: string }) => bootId === 'dead';
  expect(await open('living').recover(() => [], isDead)).toEqual({ released: 1, unknown: 0 });
  expect(await dead.find(left)).toBeNull();
});
