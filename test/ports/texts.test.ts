import { Client } from 'pg';
import { expect, test } from 'vitest';
import { statementOf } from '../../src/store/db/postgres.ts';
import { allTexts, render } from '../../src/store/db/sql.ts';
import { FLAGS, MONEY, SQLITE } from '../../src/store/db/sqlite.ts';
import '../../src/store/market.ts';
import '../../src/store/service-records.ts';
import { openMemoryLedger } from '../support/ledger/fresh-ledger.ts';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

// Every text that both databases run: each prepares it, and the names and types of its results agree.

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

const whole = ({ text, followers }: ReturnType<typeof allTexts>[number]): string => [text, ...followers].join('\n');

function columnsOnSqlite(): Map<string, string[]> {
  const db = openMemoryLedger();
  const found = allTexts().map((sql): [string, string[]] => {
    const statement = db.prepare(render(sql.text, SQLITE, nothingFor(whole(sql))).text);
    const names = statement.reader ? statement.columns().map(({ name }) => name) : [];
    return [sql.text, [...(sql.given ?? names)]];
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
    for (const sql of allTexts()) {
      const call = { sql, values: nothingFor(whole(sql)) };
      // What is nothing may break a constraint. Then the statement was prepared, and returns no rows.
      const fields = await client.query(statementOf(call)).then(
        (result) => result.fields,
        (error) => {
          expect(error.code, `${sql.text}\n${error.message}`).toMatch(/^23/);
          return null;
        },
      );
      if (fields === null || fields.length === 0) continue;
      expect(
        fields.map(({ name }) => name),
        sql.text,
      ).toEqual(onSqlite.get(sql.text));
      for (const { name, dataTypeID } of fields) {
        expect([sql.text, name, dataTypeID === NUMERIC]).toEqual([sql.text, name, MONEY.has(name)]);
        expect([sql.text, name, dataTypeID === BOOLEAN]).toEqual([sql.text, name, FLAGS.has(name)]);
      }
    }
    await client.end();
  });
});
