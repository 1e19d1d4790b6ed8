import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLedger, hashClient, hashRequest, type Ledger } from '../../../src/payment/ledger.ts';
import { REVERTED } from '../../../src/payment/usdc/settler.ts';
import { openLedgerDatabase } from '../../../src/store/database.ts';
import type { LedgerStore } from '../../../src/store/ledger-port.ts';
import { createLedgerStore } from '../../../src/store/ledger-store.ts';

let folder: string;
let store: LedgerStore;
let now = 1_800_000_000_000;
const clock = { nowMs: () => now, sleep: async () => {} };
const options = { clock, storeBytes: 1000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 3 };
const open = (bootId: string): Ledger => createLedger({ ...options, store, bootId });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-'));
  store = createLedgerStore(openLedgerDatabase(join(folder, 'ledger.db')));
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const payer = randomBytes(20);
const payment = (nonce = randomBytes(32), from: Uint8Array = payer) => ({
  network: 'eip155:5042',
  contract: Buffer.alloc(20, 0x36),
  payer: from,
  nonce,
  amount: 1000n,
  payTo: Buffer.alloc(20, 1),
  validAfter: 0n,
  validBefore: 2n ** 256n - 1n,
  requestHash: hashRequest('/v1/paid/x', { a: 1 }),
  clientHash: hashClient(nonce, '127.0.0.1'),
  identifierHash: null,
});
const intent = (body = 'reply') => ({ signature: randomBytes(65), checkedBlock: 7, body: Buffer.from(body) });

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
    const before = await Promise.all(ids.map((id) => ledger.openBefore(payment(), id)));
    expect(before).toEqual([0n, 1000n, 2000n]);
  });
});

describe('moves', () => {
  test('only legal ones happen', async () => {
    const ledger = open('a');
    const id = String(await ledger.reserve(payment(), false));
    expect(await ledger.settled(id, randomBytes(32), 9)).toBe(false);
    expect(await ledger.failed(id, 'x')).toBe(false);
    expect(await ledger.unknown(id)).toBe(false);
    expect(await ledger.storeIntent(id, intent())).toBe(true);
    expect(await ledger.storeIntent(id, intent())).toBe(false);
    expect(await ledger.release(id)).toBe(false);
    expect(await ledger.unknown(id)).toBe(true);
    expect(await ledger.settled(id, randomBytes(32), 9)).toBe(true);
    expect(await ledger.failed(id, 'x')).toBe(false);
    expect(await ledger.unknown(id)).toBe(false);
    expect((await ledger.get(id))?.state).toBe('settled');
  });

  test('an ended payment has no signature left, in the row or in the file', async () => {
    const ledger = open('a');
    const [first, second] = [intent(), intent()];
    const ids = [String(await ledger.reserve(payment(), false)), String(await ledger.reserve(payment(), false))];
    await ledger.storeIntent(String(ids[0]), first);
    await ledger.storeIntent(String(ids[1]), second);
    expect((await ledger.get(String(ids[0])))?.signature).toEqual(first.signature);
    await ledger.settled(String(ids[0]), randomBytes(32), 9);
    await ledger.failed(String(ids[1]), 'gone');
    for (const id of ids) expect((await ledger.get(id))?.signature).toBeNull();
    await store.close();
    const bytes = readFileSync(join(folder, 'ledger.db'));
    expect(bytes.includes(first.signature)).toBe(false);
    expect(bytes.includes(second.signature)).toBe(false);
    store = createLedgerStore(openLedgerDatabase(join(folder, 'ledger.db')));
  });

  test('a reverted payment may be reserved again, and falls back to failed when that fails; another failure may not', async () => {
    const ledger = open('a');
    const [reverted, cancelled] = [payment(), payment()];
    for (const [one, reason] of [
      [reverted, REVERTED],
      [cancelled, 'cancelled'],
    ] as const) {
      const id = String(await ledger.reserve(one, false));
      await ledger.storeIntent(id, intent());
      await ledger.failed(id, reason);
    }
    expect(await ledger.reserve(cancelled, false)).toBeNull();
    const again = String(await ledger.reserve(reverted, true));
    expect((await ledger.get(again))?.checkedBlock).toBe(7);
    await ledger.release(again);
    expect((await ledger.find(reverted))?.state).toBe('failed');
  });
});

describe('replies', () => {
  const settled = async (ledger: Ledger, body: string): Promise<string> => {
    const id = String(await ledger.reserve(payment(randomBytes(32), randomBytes(20)), false));
    expect(await ledger.storeIntent(id, intent(body))).toBe(true);
    await ledger.settled(id, randomBytes(32), 9);
    return id;
  };

  test('come again five times and no more', async () => {
    const ledger = open('a');
    const id = await settled(ledger, 'bytes');
    for (let i = 0; i < 5; i++) expect(String(Buffer.from((await ledger.redeliver(id)) ?? []))).toBe('bytes');
    expect(await ledger.redeliver(id)).toBeNull();
  });

  test('are gone after their time, and the row stays', async () => {
    const ledger = open('a');
    const id = await settled(ledger, 'bytes');
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
    expect(await ledger.storeIntent(next, intent('y'.repeat(200)))).toBe(false);
    expect((await ledger.get(next))?.state).toBe('reserved');
    expect(await ledger.redeliver(id)).not.toBeNull();
    await settled(ledger, 'z'.repeat(100));
    expect(ledger.hasRoom()).toBe(false);
    now += 900_001;
    await ledger.purge();
    expect(ledger.hasRoom()).toBe(true);
  });
});

test('recovery lets go of one that wakes while it is taken over: what it sells from then on is its own', async () => {
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

test('recovery forgets what was never sent, takes over the rest, and leaves the living alone', async () => {
  const dead = open('dead');
  const [reserved, unsent, sent, ended] = [payment(), payment(), payment(), payment(randomBytes(32), randomBytes(20))];
  await dead.reserve(reserved, false);
  const unsentId = String(await dead.reserve(unsent, false));
  await dead.storeIntent(unsentId, intent());
  const sentId = String(await dead.reserve(sent, false));
  await dead.storeIntent(sentId, intent());
  await dead.noteBroadcast([{ id: sentId, transaction: randomBytes(32) }]);
  const endedId = String(await dead.reserve(ended, false));
  await dead.storeIntent(endedId, intent());
  await dead.settled(endedId, randomBytes(32), 9);
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
