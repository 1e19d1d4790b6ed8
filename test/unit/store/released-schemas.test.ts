import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RELEASED, type ReleasedSchema, UNFIT } from '../../../scripts/lib/schemas/released.ts';
import { FROM, POOL, TOKEN, WHOLE } from '../../../scripts/lib/schemas/write-chain.ts';
import { openChainDatabase } from '../../../src/collector/store/database.ts';
import { createChainFacts } from '../../../src/collector/store/facts.ts';
import { createChainReads } from '../../../src/collector/store/reads.ts';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { createSqliteStores } from '../../../src/store/open.ts';
import { openLedgerReports } from '../../../src/store/reports.ts';
import { unpack } from '../../support/ledger/released-fixtures.ts';
import { expectOthers, expectPayments, expectPromises, expectProofs } from '../../support/ledger/released-ledger.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-released-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const of = (database: ReleasedSchema['database']) => RELEASED.filter((one) => one.database === database);

/** Every table, index and trigger, without the comments of the migrations that made them. */
const schemaOf = (db: Database.Database): string[] =>
  db
    .prepare<[], string>("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1")
    .pluck()
    .all()
    .map((text) => text.replace(/--[^\n]*/g, '').replace(/\s+/g, ' '));

function expectWhole(db: Database.Database, fresh: Database.Database): void {
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(db.pragma('foreign_key_check')).toEqual([]);
  expect(db.pragma('user_version', { simple: true })).toBe(fresh.pragma('user_version', { simple: true }));
  expect(schemaOf(db)).toEqual(schemaOf(fresh));
  fresh.close();
}

describe.each(of('sqlite'))('a ledger in a file of version $version, made by $commit', (schema) => {
  const { version } = schema;
  const open = () => {
    const file = join(folder, 'ledger.db');
    unpack(schema, file);
    return openLedgerDatabase(file);
  };

  test('is brought to the schema that a new ledger has', async () => {
    const db = open();
    expectWhole(db, openLedgerDatabase(join(folder, 'fresh.db')));
    db.close();
  });

  test('has every row of then, with the same meaning', async () => {
    const stores = createSqliteStores(open());
    await expectPayments(stores, version);
    await expectOthers(stores, version);
    await expectProofs(stores, version);
    await stores.close();
  });

  test('keeps the promises of then', async () => {
    const stores = createSqliteStores(open());
    await expectPromises(stores, version);
    await stores.close();
  });

  test('is reported as it is, before it is migrated', async () => {
    const file = join(folder, 'ledger.db');
    unpack(schema, file);
    const reports = openLedgerReports(file);
    const settled = (await reports.list('settled', 10)).find(({ id }) => id === 'p4-settled');
    expect(settled).toMatchObject({ amount: 2500n, route: version >= 15 ? '/v1/paid/chain/wallet' : null });
    expect((await reports.status()).oldestOpen).toMatchObject({ id: 'p1-reserved' });
    await reports.close();
  });
});

describe.each(of('chain'))('a chain database of version $version, made by $commit', (schema) => {
  test('is brought to the schema that a new one has, with every row of then', () => {
    const file = join(folder, 'chain.db');
    unpack(schema, file);
    const db = openChainDatabase(file);
    expectWhole(db, openChainDatabase(join(folder, 'fresh.db')));
    const reads = createChainReads(db);
    const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}` as const;
    expect(reads.latestFee()).toMatchObject({ number: WHOLE.to, at: FROM + 9 });
    expect(reads.recentTransactions(5)).toEqual([4, 4, 4, 4, 4]);
    expect(reads.deploys(5)).toMatchObject([{ block: 1003, codeBytes: 512 }]);
    expect(reads.lastTrade(hex(TOKEN))).toMatchObject({ block: 1007 });
    expect(reads.tokenEvents(5)).toMatchObject([{ block: 1006, kind: 'burn', amount: 2n ** 70n }]);
    expect(reads.costs('tokenTransfer', 'gas', FROM)).toEqual(new Map([[65_000n, 1]]));
    expect(reads.tips(FROM)).toEqual(schema.version >= 2 ? new Map([[1_000_000_000n, 1]]) : new Map());
    expect(reads.probes('rpc.example', 0)).toMatchObject([{ ok: true, latencyMs: 40, head: WHOLE.to }]);
    expect(reads.hours(FROM - 7200, FROM)).toMatchObject([{ blocks: 10 }]);
    const facts = createChainFacts(db);
    expect(facts.coverage('full')).toEqual([WHOLE]);
    expect(facts.head()).toMatchObject({ number: WHOLE.to });
    const priced = db.prepare('SELECT side, price_after FROM trades WHERE pool = ? AND block = 1007').raw().get(POOL);
    expect(priced).toEqual(schema.version >= 3 ? ['buy', 2.1007] : [null, null]);
    db.close();
  });
});

describe.each(UNFIT)('a file of version $version from between two merges, made by $commit', (schema) => {
  test('is refused with the part that it lacks, and not changed', () => {
    const file = join(folder, 'ledger.db');
    unpack(schema, file);
    const lacking = schema.version === 9 ? 'relayer_spending' : 'lightning_facilitator_(nodes|days)';
    expect(() => openLedgerDatabase(file)).toThrow(
      new RegExp(
        `ledger\\.db is of version ${schema.version}, but lacks ${lacking}\\.\\w+: a commit between two versions`,
      ),
    );
    const db = new Database(file);
    expect(db.pragma('user_version', { simple: true })).toBe(schema.version);
    expect(() => db.prepare('SELECT route FROM usdc_payments')).toThrow('no such column');
    db.close();
  });
});
