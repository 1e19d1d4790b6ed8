import { chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Postgres, startPostgres } from '../../../scripts/lib/ledger/postgres.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { openPostgresStores } from '../../../src/store/open-postgres.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { diskFolder } from '../../support/disk/disk-runs.ts';
import {
  type DiskControl,
  type DiskFault,
  diskMissing,
  faultyDiskEnv,
  openDiskControl,
} from '../../support/disk/faulty-disk.ts';
import { documented } from '../../support/disk/outcome-table.ts';
import { adapters, describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { hash32, reservation } from '../../support/ledger/ledger-rows.ts';

/** The folders of private servers begin so. */
const SERVERS = join(tmpdir(), 'percall-postgres-');
const FAULTS: Record<string, DiskFault> = {
  'a write of the log fails (`EIO`)': { on: ['write'], error: 'EIO', part: '/pg_wal/', times: 1 },
  'the log’s disk is full (`ENOSPC`)': { on: ['write'], error: 'ENOSPC', part: '/pg_wal/', times: 1 },
  'a sync of the log fails (`EIO`)': { on: ['sync'], error: 'EIO', part: '/pg_wal/', times: 1 },
  'the tables’ disk is full (`ENOSPC`)': { on: ['growing'], error: 'ENOSPC', part: '/base/' },
};

let folder: string;
let disk: DiskControl;
let server: Postgres;
let stores: LedgerStores;

// A server that must not fail is not needed here: `adapters` says whether there is one at all.
const canRun = diskMissing === null && adapters.every(({ missing }) => missing === null);

describePostgres('PostgreSQL on a disk that fails', () => {
  beforeAll(async () => {
    if (!canRun) return;
    folder = diskFolder();
    chmodSync(folder, 0o755);
    const control = join(folder, 'control');
    disk = openDiskControl(control);
    server = await startPostgres(await faultyDiskEnv(SERVERS, control));
    await server.createDatabase('ledger');
    const limits = { poolSize: 4, connectTimeoutMs: 10_000, statementTimeoutMs: 10_000 };
    stores = await openPostgresStores({ url: server.url('ledger'), ...limits, clock: systemClock });
  });
  afterAll(async () => {
    if (!canRun) return;
    await stores.close();
    await server.stop();
    disk.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.skipIf(!canRun).each(Object.keys(FAULTS))(
    'when %s: the sale is refused or unknown, nothing acknowledged is lost, and it goes on by itself',
    async (name) => {
      const { payments } = stores;
      const sell = (id: string) => payments.reserve(reservation(id, id), 0, null);
      expect(await sell(`${name} before`)).toBe(true);
      disk.arm(FAULTS[name] as DiskFault);
      const failed = await untilOneFails(name);
      const said = await stores.ping().catch((error: unknown) => error);
      disk.heal();
      await untilWell();
      // Every acknowledged reservation is there, and none can be made again.
      for (const id of [`${name} before`, ...failed.acknowledged]) {
        expect((await payments.get(id))?.state, id).toBe('reserved');
        expect(await payments.reserve(reservation(`${id} copy`, id), 0, null), id).toBe(false);
      }
      expect(await sell(`${name} after`)).toBe(true);
      const isSaid = said instanceof Error ? 'not ready' : 'ready';
      expect(failed.code).toBe('ledger_unavailable');
      expect([isSaid]).toEqual(documented('PostgreSQL', name));
    },
  );
});

/** Reserves until a reservation rejects. A reply of some kilobytes makes the tables grow. */
async function untilOneFails(name: string): Promise<{ acknowledged: string[]; code: string }> {
  const acknowledged: string[] = [];
  for (let at = 0; ; at++) {
    const id = `${name} ${at}`;
    const calldata = Buffer.concat(Array.from({ length: 200 }, (_, part) => hash32(`${id} ${part}`)));
    try {
      await stores.payments.reserve(reservation(id, id), 0, null);
      acknowledged.push(id);
      await stores.payments.move(id, ['reserved'], 'reserved', { calldata });
    } catch (error) {
      return { acknowledged, code: (error as { code: string }).code };
    }
  }
}

/** After a fault of its log the server ends its connections, and recovers. */
async function untilWell(): Promise<void> {
  while (
    !(await stores.ping().then(
      () => true,
      () => false,
    ))
  )
    await delay(50);
}
