import { Client } from 'pg';
import { expect, test } from 'vitest';
import { statementOf } from '../../src/store/db/postgres-text.ts';
import { render } from '../../src/store/db/sql.ts';
import { FLAGS, MONEY, SQLITE } from '../../src/store/db/sqlite.ts';
import { type CommonText, commonTexts, nothingFor, whole } from '../support/ledger/common-texts.ts';
import { openMemoryLedger } from '../support/ledger/fresh-ledger.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// Every text that both databases run: each prepares it, and the names and types of its results agree.

const texts = commonTexts();

const [BOOLEAN, NUMERIC] = [16, 1700];
/** Of the subjects, and of a payment's moves: they show that the texts were found. */
const LEAST = { subjects: 110, moves: 140 };

function columnsOnSqlite(): Map<string, string[]> {
  const db = openMemoryLedger();
  const found = texts.map((one): [string, string[]] => {
    const statement = db.prepare(render(one.text, SQLITE, nothingFor(whole(one))).text);
    const names = statement.reader ? statement.columns().map(({ name }) => name) : [];
    return [one.text, [...(one.given ?? names)]];
  });
  db.close();
  return new Map(found);
}

test('there are many, and SQLite prepares each', () => {
  const moves = texts.filter(({ text }) => text.includes('SET state = @to'));
  expect(moves.length).toBeGreaterThan(LEAST.moves);
  expect(texts.length - moves.length).toBeGreaterThan(LEAST.subjects);
  expect(columnsOnSqlite().size).toBe(new Set(texts.map(({ text }) => text)).size);
});

/** The tables that a part of a text reads beside the one that it changes, and the one that it changes. */
function tablesOf(part: string): { reads: string[]; changes: string | undefined } {
  const changes = /^\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)/.exec(part)?.[1];
  const read = part.replace(/^\s*DELETE FROM\s+\w+/, '').matchAll(/\b(?:FROM|JOIN|USING)\s+(\w+)/g);
  return { reads: [...read].map(([, table = '']) => table), changes };
}

/** Followers that read or change what another part of their text changes: right on SQLite, wrong on PostgreSQL. */
function entangled({ text, followers }: Pick<CommonText, 'text' | 'followers'>): string[] {
  const parts = [text, ...followers].map((part) => ({ part, ...tablesOf(part) }));
  return followers.filter((follower) => {
    const others = parts.filter(({ part }) => part !== follower).map(({ changes }) => changes);
    const { reads, changes } = tablesOf(follower);
    return [...reads, changes].some((table) => table !== undefined && others.includes(table));
  });
}

test('no follower reads or changes a table that another part of its text changes', () => {
  expect(texts.flatMap(entangled)).toEqual([]);
});

test('such a follower is found', () => {
  const text = 'UPDATE channels SET charged = 1 WHERE id = @id RETURNING id';
  const reading = 'DELETE FROM usdc_replies WHERE payment_id IN (SELECT id FROM channels WHERE id = done.id)';
  const changing = 'UPDATE channels SET balance = 0 FROM done WHERE channels.id = done.id';
  const neither = 'INSERT INTO gateway_transfers (payment_id) SELECT done.id FROM done';
  expect(entangled({ text, followers: [reading, changing, neither] })).toEqual([reading, changing]);
});

describePostgres('the columns of each text', () => {
  test('have the same names on both databases, and PostgreSQL’s types are those that SQLite reads by name', async () => {
    const client = new Client({ connectionString: await freshDatabase() });
    await client.connect();
    const onSqlite = columnsOnSqlite();
    for (const one of texts) {
      const call = one(nothingFor(whole(one)));
      // What is nothing may break a constraint. Then the statement was prepared, and returns no rows.
      const fields = await client.query(statementOf(call)).then(
        (result) => result.fields,
        (error) => {
          expect(error.code, `${one.text}\n${error.message}`).toMatch(/^23/);
          return null;
        },
      );
      if (fields === null || fields.length === 0) continue;
      expect(
        fields.map(({ name }) => name),
        one.text,
      ).toEqual(onSqlite.get(one.text));
      for (const { name, dataTypeID } of fields) {
        expect([one.text, name, dataTypeID === NUMERIC]).toEqual([one.text, name, MONEY.has(name)]);
        expect([one.text, name, dataTypeID === BOOLEAN]).toEqual([one.text, name, FLAGS.has(name)]);
      }
    }
    await client.end();
  });
});
