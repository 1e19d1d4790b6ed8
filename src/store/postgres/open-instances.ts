import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { OpenWindows } from '../../lib/limits/minute-windows.ts';
import type { InstancesStore, Notifications } from '../ports/instances.ts';
import { createInstancesStore } from './instances.ts';
import { openNotifications } from './notifications.ts';
import { openPools } from './pool.ts';
import { createRetry } from './retry.ts';
import { openPostgresWindows } from './shared-windows.ts';
import { fixed } from './statement.ts';
import { createRun, createTransact } from './transaction.ts';

/** A beat that takes longer is as good as none: the lease must not run out behind it. */
const BEAT_TIMEOUT_MS = 1500;
/** Each of the two pools; connections are made when they are needed. */
const POOL_SIZE = 5;
/** One statement decides each of these; what two instances write is never the same row but the lease, whose condition is judged again. */
const BEGIN = fixed('BEGIN ISOLATION LEVEL READ COMMITTED');

interface OpenInstancesOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  readonly log: { warn(detail: object, message: string): void };
}

/** What instances share beside the ledger's rows, on connections of their own, so that no burst of sales keeps a beat waiting. */
export interface InstancesShare {
  readonly store: InstancesStore;
  readonly notifications: Notifications;
  readonly windows: OpenWindows;
  close(): Promise<void>;
}

export function openInstances({ url, connectTimeoutMs, clock, log }: OpenInstancesOptions): InstancesShare {
  const limits = {
    ...{ url, size: POOL_SIZE, connectTimeoutMs: Math.min(connectTimeoutMs, BEAT_TIMEOUT_MS) },
    statementTimeoutMs: BEAT_TIMEOUT_MS,
  };
  // Each its own, because counts come as fast as strangers call.
  const beats = openPools({ ...limits, applicationName: 'percall instances' });
  const counts = openPools({ ...limits, applicationName: 'percall limits' });
  const retry = createRetry(clock);
  const notifications = openNotifications({ url, connectTimeoutMs, pool: beats.reads, clock, log });
  // What every instance knows and no row holds.
  const salt = createHash('sha256').update(url).digest('hex');
  return {
    store: createInstancesStore(createTransact(beats.writes, retry, BEGIN)),
    notifications,
    windows: openPostgresWindows(createRun(counts.writes, retry), salt),
    close: async () => {
      await notifications.close();
      await Promise.all([beats.close(), counts.close()]);
    },
  };
}
