import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describePostgres } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { listingRow } from '../support/ledger/market-rows.ts';
import { accountedOf, nodeOf, TODAY } from '../support/lightning/lightning-rows.ts';
import { type Meddled, openMeddled, untilSomebodyWaits } from '../support/postgres/lock-waits.ts';

const INSERT = `
  INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                             request_hash, client_hash, reserved_at, place)
  SELECT 'blocker', network, contract, payer, request_hash, state, boot_id, amount, pay_to, 0, 1, request_hash, client_hash, 1, 99
    FROM usdc_payments LIMIT 1`;

describePostgres('transactions that conflict', () => {
  let stores: Meddled['stores'];
  let blocker: Meddled['blocker'];
  let watcher: Meddled['watcher'];
  let retries: Meddled['retries'];
  let close: Meddled['close'];
  beforeEach(async () => {
    ({ stores, blocker, watcher, retries, close } = await openMeddled());
  });
  afterEach(() => close());

  test('need no retry under the turn: a claim whose counter another program has changed is made and counted once', async () => {
    await blocker.query('BEGIN');
    await blocker.query('UPDATE lightning_facilitator_totals SET claims = claims + 10');
    const claims = Promise.all(['a', 'b', 'a'].map((name) => stores.lightning.claim(accountedOf(name))));
    await untilSomebodyWaits(watcher);
    await blocker.query('COMMIT');
    expect(await claims).toEqual(['claimed', 'claimed', 'duplicate']);
    expect(retries()).toBe(0);
    const counts = await stores.lightning.facilitatorCounts(TODAY, nodeOf('theirs'));
    expect(counts).toEqual({ total: 12, today: 2, nodes: 1, own: 2 });
  });

  test('are not retried when there was no conflict', async () => {
    await blocker.query('BEGIN');
    await blocker.query('SELECT claims FROM lightning_facilitator_totals FOR UPDATE');
    const claim = stores.lightning.claim(accountedOf('a'));
    await untilSomebodyWaits(watcher);
    await blocker.query('ROLLBACK');
    expect([await claim, retries()]).toEqual(['claimed', 0]);
  });

  test('cannot exceed a payer’s cap together: who takes the turn second sees what the first one wrote', async () => {
    await stores.payments.reserve(reservation('a', 'a'), 0, null);
    await blocker.query('BEGIN');
    await blocker.query("UPDATE ledger_turns SET taken = taken + 1 WHERE name = 'payments'");
    await blocker.query(INSERT);
    const reserved = stores.payments.reserve(reservation('b', 'b'), 2, null);
    await untilSomebodyWaits(watcher);
    await blocker.query('COMMIT');
    expect([await reserved, (await stores.payments.countByState()).reserved]).toEqual([false, 2]);
  });

  test('of one turn do not hold up those of another, however many wait', async () => {
    await blocker.query('BEGIN');
    await blocker.query("UPDATE ledger_turns SET taken = taken + 1 WHERE name = 'others'");
    const more = { wei: 1n, failedWei: 0n, gas: 1n, transactions: 1, payments: 1 };
    const waiting = Promise.all(Array.from({ length: 8 }, () => stores.spending.add('2033-01-01', more)));
    await untilSomebodyWaits(watcher);
    expect(await stores.payments.reserve(reservation('a', 'a'), 0, null)).toBe(true);
    expect(await stores.lightning.claim(accountedOf('a'))).toBe('claimed');
    await blocker.query('COMMIT');
    await waiting;
    expect(await stores.spending.spentOn('2033-01-01')).toMatchObject({ wei: 8n, payments: 8 });
  });

  test('that deadlock are resolved by the database, and ours is retried or goes first', async () => {
    await stores.payments.reserve(reservation('a', 'a'), 0, null);
    await stores.payments.reserve(reservation('b', 'b'), 0, null);
    await blocker.query('BEGIN');
    await blocker.query("UPDATE usdc_payments SET checked_block = 1 WHERE id = 'b'");
    const moves = Promise.all(['a', 'b'].map((id) => stores.payments.move(id, ['reserved'], 'settling', {})));
    await untilSomebodyWaits(watcher);
    // Now each waits for the other. PostgreSQL aborts one of them, and ours is done in either case.
    const theirs = await blocker.query("UPDATE usdc_payments SET checked_block = 1 WHERE id = 'a'").then(
      () => 'done',
      (error) => error.code,
    );
    await blocker.query('COMMIT');
    expect(await moves).toEqual([true, true]);
    expect(theirs === '40P01' || retries() > 0).toBe(true);
  });

  test('have separate outcomes: only a write that violates a constraint rejects, and its error does not contain the row', async () => {
    const secret = Buffer.alloc(32, 0xab);
    const ends = await Promise.allSettled([
      stores.payments.reserve(reservation('a', 'a'), 0, null),
      stores.payments.reserve(reservation('b', 'b', { amount: 0n, clientHash: secret }), 0, null),
      stores.payments.reserve(reservation('c', 'c'), 0, null),
    ]);
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const error = ends.map((end) => (end.status === 'rejected' ? end.reason : null))[1];
    expect(error).toMatchObject({ name: 'LedgerDatabaseError', code: '23514' });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(secret.toString('hex'));
  });

  test('are few when one of many writes violates a constraint, because the batch is split into ever smaller parts', async () => {
    const taken = async () =>
      Number((await blocker.query("SELECT taken FROM ledger_turns WHERE name = 'lightning'")).rows[0]?.taken);
    const before = await taken();
    const names = Array.from({ length: 64 }, (_, at) => `proof ${at}`);
    const claims = names.map((name, at) => accountedOf(name, {}, at === 5 ? { payTo: Buffer.alloc(32) } : {}));
    const ends = await Promise.allSettled(claims.map((claim) => stores.lightning.claim(claim)));
    expect(ends.map(({ status }) => status === 'rejected')).toEqual(names.map((_, at) => at === 5));
    // A failed transaction does not change the count; one part of each split succeeds.
    expect((await taken()) - before).toBeLessThanOrEqual(Math.log2(64));
  });

  test('are READ COMMITTED under the turn, and synchronous, whatever the database’s own defaults are', async () => {
    await blocker.query(`
      ALTER DATABASE ${blocker.database} SET synchronous_commit = off;
      ALTER DATABASE ${blocker.database} SET default_transaction_isolation = 'repeatable read';
      CREATE TABLE seen (isolation TEXT, synchronous TEXT);
      CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen VALUES (current_setting('transaction_isolation'), current_setting('synchronous_commit')); RETURN NEW;
      END $$;
      CREATE TRIGGER see BEFORE INSERT OR UPDATE ON usdc_payments FOR EACH ROW EXECUTE FUNCTION see();
      CREATE TRIGGER see BEFORE INSERT ON lightning_claims FOR EACH ROW EXECUTE FUNCTION see();
      CREATE TRIGGER see BEFORE INSERT ON market_listings FOR EACH ROW EXECUTE FUNCTION see();
      CREATE TRIGGER see BEFORE INSERT ON relayer_spending FOR EACH ROW EXECUTE FUNCTION see();`);
    await stores.payments.reserve(reservation('a', 'a'), 0, null);
    await stores.payments.move('a', ['reserved'], 'settling', {});
    await stores.payments.noteBroadcast([{ id: 'a', transaction: hash32('t') }], ['settling']);
    await stores.lightning.claim(accountedOf('a'));
    await stores.spending.add('2026-11-21', { wei: 1n, failedWei: 0n, gas: 1n, transactions: 1, payments: 1 });
    await stores.market.put(listingRow(), 1, { total: 1, perDomain: 1 });
    const { rows } = await blocker.query(
      'SELECT isolation, synchronous, count(*)::int FROM seen GROUP BY 1, 2 ORDER BY 1',
    );
    expect(rows).toEqual([{ isolation: 'read committed', synchronous: 'on', count: 6 }]);
  });
});
