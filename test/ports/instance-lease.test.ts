import { Client } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { type InstancesShare, openInstances } from '../../src/store/instances.ts';
import { openPostgresStores } from '../../src/store/open-postgres.ts';
import type { InstancesStore } from '../../src/store/ports/instances.ts';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { describePostgres, POSTGRES_LIMITS } from '../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../support/ledger/ledger-rows.ts';
import { freshDatabase } from '../support/postgres/postgres-run.ts';
import { quiet } from '../support/quiet.ts';
import { until } from '../support/service/workers.ts';
import { patient, unlessLate } from './unless-late.ts';

const [LEASE_MS, LIVING_MS] = [60_000, 60_000];

describePostgres('instances that share a ledger', () => {
  let url: string;
  let share: InstancesShare;
  let store: InstancesStore;
  beforeEach(async () => {
    url = await freshDatabase();
    share = openInstances({ clock: systemClock, log: quiet }, url, 5000);
    store = patient(share.store);
  });
  afterEach(() => share.close());

  const heartbeat = (bootId: string, leaseMs = LEASE_MS, livingMs = LIVING_MS) =>
    store.heartbeat(bootId, leaseMs, livingMs);

  test('have exactly one leader when many ask at once, and the fencing token stays while it leads', async () => {
    const names = Array.from({ length: 16 }, (_, at) => `i${at}`);
    const outcomes = await Promise.all(names.map((name) => heartbeat(name)));
    const leading = names.filter((_, at) => outcomes[at]?.fencingToken !== null);
    expect(leading).toHaveLength(1);
    const again = await Promise.all(names.map((name) => heartbeat(name)));
    expect(again.map(({ fencingToken }) => fencingToken)).toEqual(outcomes.map(({ fencingToken }) => fencingToken));
    expect(again.map(({ living }) => living.toSorted())).toEqual(names.map(() => names.toSorted()));
  });

  test('are told the database’s time, in milliseconds', async () => {
    const [from, now, to] = [systemClock.nowMs(), await share.nowMs(), systemClock.nowMs()];
    // Both clocks are this machine's; they are read with other precision.
    expect(now).toBeGreaterThanOrEqual(from - 2);
    expect(now).toBeLessThanOrEqual(to + 2);
  });

  test('get another leader with a higher fencing token once the lease has ended or was given up', async () => {
    const { fencingToken: first } = await heartbeat('a', 0);
    const { fencingToken: second } = await heartbeat('b');
    expect(second).toBeGreaterThan(first ?? Number.POSITIVE_INFINITY);
    expect((await heartbeat('a')).fencingToken).toBeNull();
    await store.leave('b');
    const { fencingToken: third, living } = await heartbeat('a');
    expect(third).toBeGreaterThan(second ?? Number.POSITIVE_INFINITY);
    expect(living).toEqual(['a']);
  });

  test('read the leader’s report, and no report of an earlier leader', async () => {
    const { fencingToken } = await heartbeat('a', 0);
    expect(await store.report(fencingToken ?? 0, 'too late')).toBe(false);
    const { fencingToken: next } = await heartbeat('b');
    expect(await store.report(fencingToken ?? 0, 'of before')).toBe(false);
    expect((await heartbeat('a')).reported).toBeNull();
    expect(await store.report(next ?? 0, 'of now')).toBe(true);
    expect((await heartbeat('a')).reported).toBe('of now');
    await store.leave('b');
    expect((await heartbeat('a')).reported).toBeNull();
  });

  test('list dead instances, by heartbeat time-out or by markDead, until they are deleted', async () => {
    await Promise.all([heartbeat('leader'), heartbeat('known')]);
    await heartbeat('missed');
    expect((await heartbeat('leader', LEASE_MS, 0)).dead.toSorted()).toEqual(['known', 'leader', 'missed']);
    await store.markDead('known');
    expect(await heartbeat('leader')).toMatchObject({ dead: ['known'] });
    await store.forget('known');
    expect(await heartbeat('leader')).toMatchObject({ dead: [] });
    await store.markDead('missed');
    expect((await heartbeat('missed')).living.toSorted()).toEqual(['leader', 'missed']);
  });

  test('have a free lease when the leader is marked dead, but not when another instance is', async () => {
    const { fencingToken } = await heartbeat('a');
    await store.markDead('b');
    expect((await heartbeat('c')).fencingToken).toBeNull();
    await store.markDead('a');
    expect((await heartbeat('c')).fencingToken).toBeGreaterThan(fencingToken ?? Number.POSITIVE_INFINITY);
  });

  test('note no broadcast under an old fencing token, and each one under the current token', async () => {
    const stores: LedgerStores = await openPostgresStores({ url, ...POSTGRES_LIMITS, clock: systemClock });
    try {
      await stores.payments.reserve(reservation('p', 'n'), 0, null);
      await stores.payments.move('p', ['reserved'], 'settling', {}, { store: Buffer.from('reply') });
      const { fencingToken: old } = await heartbeat('a', 0);
      const { fencingToken } = await heartbeat('b');
      const note = (under: number | null) =>
        stores.payments.noteBroadcast([{ id: 'p', transaction: hash32('t') }], ['settling'], under ?? -1);
      expect([...(await note(old))]).toEqual([]);
      expect((await stores.payments.get('p'))?.transaction).toBeNull();
      expect([...(await note(fencingToken))]).toEqual(['p']);
      expect((await stores.payments.get('p'))?.transaction).toEqual(hash32('t'));
    } finally {
      await stores.close();
    }
  });

  test('count a client’s calls together, each call once, and another client’s apart', async () => {
    const other = openInstances({ clock: systemClock, log: quiet }, url, 5000);
    try {
      // Each attempt counts in windows of its own.
      const { counts, two, others } = await unlessLate(async (attempt) => {
        const calls = `calls ${attempt}`;
        const both = [share.windows(calls), other.windows(calls)] as const;
        return {
          counts: await Promise.all(Array.from({ length: 64 }, (_, at) => both[at % 2 === 0 ? 0 : 1].count('one'))),
          two: await both[1].count('two'),
          others: await other.windows(`others ${attempt}`).count('one'),
        };
      });
      const sorted = counts.map(({ count }) => count).sort((a, b) => a - b);
      expect(sorted).toEqual(Array.from({ length: 64 }, (_, at) => at + 1));
      expect([two.count, others.count]).toEqual([1, 1]);
    } finally {
      await other.close();
    }
  });

  test('get each other’s notifications, also after the connection was cut', async () => {
    const other = openInstances({ clock: systemClock, log: quiet }, url, 5000);
    const heard = new Set<string>();
    other.notifications.onAsked((id) => heard.add(id));
    const sayUntilHeard = (id: string) =>
      until(`${id} is heard`, () => {
        share.notifications.ask(id);
        return heard.has(id);
      });
    try {
      await sayUntilHeard('before');
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'percall notifications'",
      );
      await client.end();
      await sayUntilHeard('after');
    } finally {
      await other.close();
    }
  });

  test('may all start at once on a database that is empty', async () => {
    const empty = await freshDatabase('template1');
    const opened = await Promise.all(
      Array.from({ length: 4 }, () => openPostgresStores({ url: empty, ...POSTGRES_LIMITS, clock: systemClock })),
    );
    const kinds = await Promise.all(opened.map(({ payments }) => payments.find(reservation('p', 'n'))));
    await Promise.all(opened.map((stores) => stores.close()));
    expect(kinds).toEqual([null, null, null, null]);
  });
});
