import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { startDatabaseProxy } from '../support/postgres/database-proxy.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';

describePostgres('the proxy that loses the answer to a COMMIT', () => {
  test('loses that of the transaction with the mark, and none that follows a read or a rolled back transaction with it', async () => {
    const proxy = await startDatabaseProxy(await freshDatabase());
    const client = new Client({ connectionString: proxy.url });
    client.on('error', () => {});
    await client.connect();
    onTestFinished(() => proxy.stop());
    const transact = async (statement: string): Promise<string> => {
      await client.query('BEGIN');
      await client.query(statement).catch(() => {});
      return (await client.query('COMMIT')).command;
    };
    const lost = proxy.loseCommit('cut', 'the mark');
    await client.query("SELECT 'the mark'");
    expect(await transact('SELECT 1')).toBe('COMMIT');
    expect(await transact("SELECT 'the mark' / 0")).toBe('ROLLBACK');
    expect(await transact('SELECT 1')).toBe('COMMIT');
    await expect(transact("SELECT 'the mark'")).rejects.toThrow();
    await lost;
  });
});
