import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { OpenWindows } from '../../lib/limits/windows.ts';
import type { InstancesStore, Notifications } from '../ports/instances.ts';
import { createInstancesStore } from './instances.ts';
import { openNotifications } from './notifications.ts';
import { openPools } from './pool.ts';
import { createRetry } from './retry.ts';
import { openPostgresWindows } from './shared-windows.ts';
import { fixed } from './statement.ts';
import { createRun, createTransact } from './transaction.ts';

/** A heartbeat that takes longer fails, so that the lease does not end while it waits. */
const HEARTBEAT_TIMEOUT_MS = 1500;
/** Each of the two pools; connections are made when they are needed. */
const POOL_SIZE = 5;
/** One statement decides each of these writes. Two instances write the same row only for the lease, whose condition is then evaluated again. */
const BEGIN = fixed('BEGIN ISOLATION LEVEL READ COMMITTED');

const NOW = fixed('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');

interface OpenInstancesOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  readonly log: { warn(detail: object, message: string): void };
}

/** What instances share beside the ledger's rows. It has its own connections, so that no burst of sales delays a heartbeat. */
export interface InstancesShare {
  readonly store: InstancesStore;
  readonly notifications: Notifications;
  readonly windows: OpenWindows;
  /** The database's time, in Unix milliseconds. */
  nowMs(): Promise<number>;
  close(): Promise<void>;
}

export function openInstances({ url, connectTimeoutMs, clock, log }: OpenInstancesOptions): InstancesShare {
  const limits = {
    url,
    size: POOL_SIZE,
    connectTimeoutMs: Math.min(connectTimeoutMs, HEARTBEAT_TIMEOUT_MS),
    statementTimeoutMs: HEARTBEAT_TIMEOUT_MS,
  };
  // Counts have their own pool, because clients decide how fast they come.
  const heartbeats = openPools({ ...limits, applicationName: 'percall instances' });
  const counts = openPools({ ...limits, applicationName: 'percall limits' });
  const retry = createRetry(clock);
  const notifications = openNotifications({ url, connectTimeoutMs, pool: heartbeats.reads, clock, log });
  // A secret that every instance knows and no row holds.
  const salt = createHash('sha256').update(url).digest('hex');
  return {
    store: createInstancesStore(createTransact(heartbeats.writes, retry, BEGIN)),
    notifications,
    windows: openPostgresWindows(createRun(counts.writes, retry), salt),
    nowMs: async () => (await heartbeats.read<{ now: number }>(NOW))[0]?.now ?? Number.NaN,
    close: async () => {
      await notifications.close();
      await Promise.all([heartbeats.close(), counts.close()]);
    },
  };
}
