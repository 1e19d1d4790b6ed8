import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { statementOf } from '../../src/store/db/postgres.ts';
import { render, sql } from '../../src/store/db/sql.ts';
import { FLAGS, MONEY, SQLITE } from '../../src/store/db/sqlite.ts';
import { openMemoryLedger } from '../support/ledger/fresh-ledger.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// Every text that both databases run: each prepares it, and the names and types of its results agree.

interface Text {
  readonly text: string;
  readonly followers: readonly string[];
  readonly given: readonly never[] | null;
}
const LISTING = join(import.meta.dirname, '../support/ledger/list-texts.ts');
const printed = execFileSync(process.execPath, [LISTING], { encoding: 'utf8' });
const texts = (JSON.parse(printed) as Text[]).map(({ text, followers, given }) => sql<object>(text, followers, given));

const [BOOLEAN, NUMERIC] = [16, 1700];
/** Far fewer than there are. It shows that the texts were found. */
const LEAST = 30;

/** Values for each parameter of a text: nothing, a list or rows of nothing. */
function nothingFor(text: string): Record<string, unknown> {
  const names = [...text.matchAll(/@(\w+)/g)].map(([, name = '']) => name);
  const lists = new Set([...text.matchAll(/\bIN\s+@(\w+)/g)].map(([, name]) => name));
  const rows = new Set([...text.matchAll(/\bFROM\s+@(\w+)::\(/g)].map(([, name]) => name));
  return Object.fromEntries(names.map((name) => [name, lists.has(name) ? [null] : rows.has(name) ? [{}] : null]));
}

const whole = ({ text, followers }: Pick<Text, 'text' | 'followers'>): string => [text, ...followers].join('\n');

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
  expect(columnsOnSqlite().size).toBeGreaterThan(LEAST);
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
