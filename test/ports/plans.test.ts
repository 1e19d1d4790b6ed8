import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../src/lib/sqlite-file.ts';
import { statementOf } from '../../src/store/db/postgres-text.ts';
import { render, sql } from '../../src/store/db/sql.ts';
import { SQLITE } from '../../src/store/db/sqlite.ts';
import { type CommonText, commonTexts, nothingFor, whole } from '../support/ledger/common-texts.ts';
import { openMemoryLedger } from '../support/ledger/fresh-ledger.ts';
import { fillStatements, GROWING, POSTGRES_WORDS, SQLITE_WORDS } from '../support/ledger/full-ledger.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// Every text finds its rows by an index, on both databases, over a ledger of ROWS payments and as many claims.

const ROWS = 100_000;
/** Texts that read a growing table whole, by their beginning, and why they may. */
const MAY_READ_ALL: readonly [begins: RegExp, why: string][] = [
  [/^SELECT state, count\(\*\) AS count FROM usdc_payments GROUP/, 'a gauge, read on a timer'],
  [/^SELECT coalesce\(sum\(length\(body\)\), 0\) AS bytes FROM/, 'the space that replies take, read on a timer'],
  [/^SELECT \(SELECT coalesce\(sum\(length\(body\)\), 0\) FROM lightning_kept/, 'the space that replies take'],
  [/^SELECT coalesce\(sum\(charged\), 0\) AS charged/, 'a gauge, read on a timer'],
  [
    /^SELECT 1 AS one FROM channels WHERE network = @network LIMIT 1/,
    'ends with the first row; a ledger has one network',
  ],
  [/^SELECT state, count\(\*\) AS count, (amount_msat|sum\()/, 'an operator’s report'],
  [/^SELECT id, state, (reserved_at|amount)/, 'an operator’s report'],
  [/^SELECT count\(\*\) AS count, CAST\(coalesce\(sum\(bytes\)/, 'the same report'],
  [/^SELECT \(SELECT count\(\*\) FROM lightning_invoices\) AS invoices/, 'an operator’s report'],
];

const texts = commonTexts();
/** No index is over blocks. */
const PLANTED = sql<object>('SELECT id FROM usdc_payments WHERE block = @block::bigint');
const judged = texts.filter(({ text }) => !MAY_READ_ALL.some(([begins]) => begins.test(text.trim())));

test('what may read a table whole exists', () => {
  for (const [begins] of MAY_READ_ALL)
    expect(
      texts.some(({ text }) => begins.test(text.trim())),
      `${begins}`,
    ).toBe(true);
});

describe('on SQLite', () => {
  let db: Sqlite;
  beforeAll(() => {
    db = openMemoryLedger();
    for (const one of fillStatements(SQLITE_WORDS, ROWS)) db.exec(one);
  });
  afterAll(() => {
    db.close();
  });

  const planOf = ({ text, followers }: CommonText): string[] =>
    [text, ...followers].flatMap((one) => {
      const written = render(one, SQLITE, nothingFor(one)).text;
      const values = Array.from({ length: written.split('?').length - 1 }, () => null);
      const plan = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${written}`).all(values);
      return plan.map(({ detail }) => detail);
    });

  /** Whole tables that a text or one of its followers reads. An index of few rows may be read whole. */
  const readWhole = (one: CommonText): string[] =>
    planOf(one)
      .map((step) =>
        /^SCAN (\w+)(?! USING (?:COVERING )?INDEX \w+_(?:open|due|unclaimed|to_read|refused)\b)/.exec(step),
      )
      .map((found) => found?.[1] ?? '')
      .filter((name) => GROWING.includes(name));

  test('each text', () => {
    expect(judged.flatMap((one) => readWhole(one).map((table) => [table, one.text]))).toEqual([]);
  });

  test('no text of the Lightning rail sorts what it could read in order', () => {
    const ofOne = judged.filter(
      ({ text }) => text.includes('lightning_') && !text.includes('FROM @') && !text.includes('usdc_'),
    );
    expect(ofOne.length).toBeGreaterThan(20);
    const sorted = ofOne.filter((one) => planOf(one).some((step) => /TEMP B-TREE(?! FOR (count|GROUP BY))/.test(step)));
    expect(sorted.map(({ text }) => text)).toEqual([]);
  });

  test('a text without an index is found', () => {
    expect(readWhole(PLANTED)).toEqual(['usdc_payments']);
  });
});

describePostgres('on PostgreSQL', () => {
  let client: Client;
  beforeAll(async () => {
    client = new Client({ connectionString: await freshDatabase() });
    await client.connect();
    for (const one of fillStatements(POSTGRES_WORDS, ROWS)) await client.query(one);
    await client.query('ANALYZE');
    // The plan that serves every value.
    await client.query('SET plan_cache_mode = force_generic_plan');
  }, 120_000);
  afterAll(() => client.end());

  interface Node {
    readonly 'Node Type': string;
    readonly 'Relation Name'?: string;
    readonly 'Index Name'?: string;
    readonly Filter?: string;
    readonly 'Index Cond'?: string;
    readonly Plans?: readonly Node[];
  }

  /** A table is read whole by a scan, and by its primary key where a filter leaves out all but the open rows. */
  const isWhole = ({ 'Node Type': type, 'Index Name': index, Filter: filter }: Node): boolean =>
    type === 'Seq Scan' || (Boolean(index?.endsWith('_pkey')) && /\bstate\b.*ANY/.test(filter ?? ''));
  const scansIn = (node: Node): string[] => [
    ...(isWhole(node) ? [node['Relation Name'] ?? ''] : []),
    ...(node.Plans ?? []).flatMap(scansIn),
  ];

  /** Where a row's key is only a filter: an index of another column is gone through. */
  const filteredByKey = (node: Node): string[] => [
    ...(!node['Index Cond'] &&
    /\((id|payment_id|payment_hash|channel_id|payer|identifier_hash) = /.test(node.Filter ?? '')
      ? [node['Index Name'] ?? '']
      : []),
    ...(node.Plans ?? []).flatMap(filteredByKey),
  ];

  async function planOf(one: CommonText, on = client): Promise<Node> {
    const { text, values } = statementOf(one(nothingFor(whole(one))));
    await on.query(`PREPARE one AS ${text}`);
    const nulls = values.length === 0 ? '' : `(${values.map(() => 'NULL').join(', ')})`;
    const { rows } = await on.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(`EXPLAIN (FORMAT JSON) EXECUTE one${nulls}`);
    await on.query('DEALLOCATE one');
    return (rows[0]?.['QUERY PLAN'][0].Plan ?? {}) as Node;
  }
  const readWhole = async (one: CommonText): Promise<string[]> =>
    scansIn(await planOf(one)).filter((name) => GROWING.includes(name));

  test('no text goes through another index for a row whose key it has, planned on an empty ledger', async () => {
    const empty = new Client({ connectionString: await freshDatabase() });
    await empty.connect();
    await empty.query('SET plan_cache_mode = force_generic_plan');
    const found: string[][] = [];
    for (const one of judged)
      for (const index of filteredByKey(await planOf(one, empty))) found.push([index, one.text]);
    await empty.end();
    expect(found).toEqual([]);
  });

  test('each text', async () => {
    const found: string[][] = [];
    for (const one of judged) for (const table of await readWhole(one)) found.push([table, one.text]);
    expect(found).toEqual([]);
  });

  test('a text without an index is found', async () => {
    expect(await readWhole(PLANTED)).toEqual(['usdc_payments']);
  });
});
