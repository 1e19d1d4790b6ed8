import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate, type Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { stepsOf } from '../../../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';
import { storesOf } from '../../../support/ledger/fresh-ledger.ts';
import {
  accountedOf,
  DAY,
  grantOf,
  hashOf,
  invoiceOf,
  keyOf,
  NOON,
  nodeOf,
  TODAY,
} from '../../../support/lightning/lightning-rows.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lightning-schema-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('a ledger from before Lightning keeps its payments and can claim', async () => {
  const file = join(folder, 'migrated.db');
  const before = new Database(file);
  migrate(before, stepsOf('sqlite').slice(0, 1));
  const nonce = hashOf('nonce');
  const key = { network: 'eip155:5042', contract: Buffer.alloc(20, 1), payer: Buffer.alloc(20, 2), nonce };
  before
    .prepare(
      `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                  valid_before, request_hash, client_hash, reserved_at)
       VALUES ('one', @network, @contract, @payer, @nonce, 'settled', 'b', 1000, @payer, '0', '1', @nonce, @nonce, 1)`,
    )
    .run(key);
  before.close();
  const db = openLedgerDatabase(file);
  expect(await storesOf(db).payments.find(key)).toMatchObject({ id: 'one', state: 'settled', amount: 1000n });
  expect(await storesOf(db).lightning.claim(grantOf('a'))).toBe('claimed');
  db.close();
});

test('a ledger from before payees were kept by day keeps its counts, also of a day that has begun', async () => {
  const file = join(folder, 'payees.db');
  const before = new Database(file);
  migrate(
    before,
    stepsOf('sqlite').filter(({ version }) => version < 13),
  );
  before.prepare('INSERT INTO lightning_facilitator_nodes (pay_to, claims) VALUES (?, 3)').run(nodeOf('theirs'));
  before.prepare('INSERT INTO lightning_facilitator_days (day, claims) VALUES (?, 3)').run(TODAY);
  before.close();
  const db = openLedgerDatabase(file);
  const store = storesOf(db).lightning;
  expect(await store.claim(accountedOf('a', { dailyCap: 4, openCap: 1 }))).toBe('claimed');
  expect(await store.claim(accountedOf('b', { dailyCap: 5, openCap: 1 }, { payTo: nodeOf('new') }))).toBe('open_cap');
  expect(await store.claim(accountedOf('b', { dailyCap: 4 }, { payTo: nodeOf('new') }))).toBe('daily_cap');
  expect(await store.facilitatorCounts(TODAY, nodeOf('theirs'))).toMatchObject({ today: 4, own: 4 });
  db.close();
});

describe('with ten thousand claims', () => {
  let db: Sqlite;
  beforeAll(async () => {
    db = openLedgerDatabase(join(folder, 'large.db'));
    db.pragma('synchronous = OFF');
    const store = storesOf(db).lightning;
    const names = Array.from({ length: 5000 }, (_, at) => `n${at}`);
    await Promise.all(
      names.flatMap((name) => [store.claim(grantOf(name)), store.claim(accountedOf(`f${name}`, { clientCap: 9999 }))]),
    );
    await Promise.all(names.slice(0, 500).map((name) => store.recordInvoice(invoiceOf(name), Buffer.from('kept'))));
  });
  afterAll(() => {
    db.close();
  });

  test('counts are exact, and are not deleted with the claims', async () => {
    const store = storesOf(db).lightning;
    const all = { total: 5000, today: 5000, nodes: 1, own: 5000 };
    expect(await store.facilitatorCounts(TODAY, nodeOf('theirs'))).toEqual(all);
    await store.prune(NOON + 8 * DAY);
    expect(await store.findClaim(keyOf('n4999'))).toBeNull();
    expect(db.prepare('SELECT count(*) FROM lightning_claims').pluck().get()).toBe(0);
    expect(await store.facilitatorCounts(TODAY, nodeOf('theirs'))).toEqual(all);
  });
});
