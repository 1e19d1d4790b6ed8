import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { Counter, Gauge, Registry } from 'prom-client';
import { type Config, ConfigError } from '../config.ts';
import { createLeaderLink, reportText } from '../instances/leader-link.ts';
import { createMembership, type Membership } from '../instances/membership.ts';
import type { Clock } from '../lib/clock.ts';
import { createMinuteWindows, type MinuteWindows, type OpenWindows } from '../lib/limits/count.ts';
import type { Leader, SettledBy } from '../payment/settling.ts';
import type { InstancesShare } from '../store/instances.ts';
import { refuseMoved } from '../store/ledger-lock.ts';
import { openSqliteStores } from '../store/open.ts';
import type { LedgerStores } from '../store/ports/stores.ts';
import { RAILS } from './rails.ts';

/** An unknown instance may have just started: for this long its open payments are not taken over. */
const NEW_INSTANCE_MS = 60_000;

export interface OpenLedger {
  readonly stores: LedgerStores;
  readonly bootId: string;
  /** They protect money, and so hold for all instances. Undefined: this process counts in its memory. */
  readonly windows: OpenWindows | undefined;
  /** For limits that each process counts by itself. */
  readonly nearWindows: (name: string) => MinuteWindows;
  /** Null when this process has the ledger for itself. */
  readonly instance: Instance | null;
  /** Whether this process does what only one process may do. */
  leads(): boolean;
  close(): Promise<void>;
}

interface Instance {
  readonly membership: Membership;
  /** The database's time, in Unix milliseconds. */
  nowMs(): Promise<number>;
  /** For `createPayments`: this process settles while its instance leads. */
  readonly settledBy: Extract<SettledBy, { kind: 'switched' }>;
}

/**
 * Opens a file of this machine, or a database that several instances share. Throws StartRefused for a file that was
 * copied elsewhere, ConfigError for a configuration that a rail cannot use with it. With a database, the process before
 * this one is marked dead. `registry` counts the database's retries.
 */
export async function openLedger(
  config: Config,
  clock: Clock,
  log: Logger,
  registry = new Registry(),
): Promise<OpenLedger> {
  if (config.ledger.url === null) refuseMoved(join(config.dataDir, 'ledger.db'));
  const ledger = await openStores(config, clock, log, registry);
  for (const { info } of RAILS) {
    const problem = await info.checkLedger?.(config, ledger.stores, log);
    if (!problem) continue;
    await ledger.close();
    throw new ConfigError([problem]);
  }
  return ledger;
}

async function openStores(config: Config, clock: Clock, log: Logger, registry: Registry): Promise<OpenLedger> {
  const bootId = randomUUID();
  const nearWindows = () => createMinuteWindows(clock);
  const { url, poolSize, connectTimeoutMs, statementTimeoutMs } = config.ledger;
  if (url === null) {
    const stores = openSqliteStores(join(config.dataDir, 'ledger.db'));
    const { close } = stores;
    return { stores, bootId, windows: undefined, nearWindows, instance: null, leads: () => true, close };
  }
  const retries = new Counter({
    name: 'ledger_retries_total',
    help: 'Transactions that were run anew because PostgreSQL had undone them for another one',
    registers: [registry],
  });
  const onRetry = () => retries.inc();
  const { openPostgresStores } = await import('../store/open-postgres.ts');
  const { openInstances } = await import('../store/instances.ts');
  const stores = await openPostgresStores({ url, poolSize, connectTimeoutMs, statementTimeoutMs, clock, onRetry });
  const share = openInstances({ clock, log }, url, connectTimeoutMs);
  await replacePredecessor(join(config.dataDir, 'boot-id'), bootId, share, log);
  const membership = createMembership({ clock, log }, share.store, bootId);
  new Gauge({
    name: 'instance_leads',
    help: '1 while this instance leads those that share the ledger, else 0',
    registers: [registry],
    collect() {
      this.set(membership.leads() ? 1 : 0);
    },
  });
  return {
    stores,
    bootId,
    windows: share.windows,
    nearWindows,
    instance: createInstance(membership, share, stores.lightning.releaseLeasesOf),
    leads: membership.leads,
    close: async () => {
      await share.close();
      await stores.close();
    },
  };
}

/** One process at a time holds the folder, so the last one has ended. Its payments need not wait for a time-out. */
async function replacePredecessor(file: string, bootId: string, { store }: InstancesShare, log: Logger): Promise<void> {
  const before = readOr(file, '').trim();
  if (before !== '')
    await store
      .markDead(before)
      .catch(() => store.markDead(before))
      .catch((err: unknown) => log.warn({ err }, 'the process of the last start was not marked dead'));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${bootId}\n`);
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}

/** `onDead` takes over what a dead instance did besides its payments. */
function createInstance(
  membership: Membership,
  { notifications, nowMs }: InstancesShare,
  onDead: (bootId: string) => Promise<unknown>,
): Instance {
  async function join({ lead, stepDown, takeOver, carry, report }: Leader): Promise<void> {
    notifications.onAsked((id) => {
      void carry(id).then((isOurs) => isOurs && notifications.reportEnded(id));
    });
    await membership.start({
      lead,
      stepDown,
      takeOver: async (dead) => {
        await takeOver(dead);
        for (const bootId of dead) await onDead(bootId);
      },
      report: () => {
        const reported = report();
        return reported && reportText(reported);
      },
    });
  }

  const leader = createLeaderLink(membership, notifications);
  return {
    membership,
    nowMs,
    settledBy: { kind: 'switched', leader, living: membership.living, takeOverAfterMs: NEW_INSTANCE_MS, join },
  };
}
