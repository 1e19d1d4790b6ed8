import type { Clock } from '../lib/clock.ts';
import type { Common, Log } from '../lib/common.ts';
import { createRounds } from '../lib/tasks.ts';
import type { Payment } from '../store/ports/payments.ts';
import type { Ledger } from './ledger.ts';
import type { RailName } from './rail.ts';
import type { SettleRows } from './settle-rows.ts';
import type { Intent, RailProbe, RefusedPayer, Settler, SettlerStatus } from './settler.ts';

// Settlement as every process sees it (`Settling`), whichever process settles, and by this one (`createLocalSettling`).
// 1. At the start, the rows of dead processes are taken over (`createRecovery`).
// 2. A stored intent is settled by its rail's settler, for this process or for another that asks.
// 3. A timer's rounds maintain the settlers and reconcile the open rows (`createMaintenance`).

/** The last probe of each remote service, by the service's name in `/readyz`. */
export type RailProbes = Readonly<Record<string, RailProbe>>;

/** Settles what this process sells, with its maintenance: by itself, by another process, or in turn. */
export interface Settling {
  /** The row after SETTLE_WAIT_MS at most: `unknown` while open, null when gone. Rejects if the ledger is silent. */
  settle(intent: Intent, contract: Uint8Array): Promise<Payment | null>;
  /** As `settle`, for a row whose payment the evidence may show already. */
  resume(payment: Payment): Promise<Payment | null>;
  status(rail: RailName): SettlerStatus;
  /** Empty where no remote service is used, and before the first answer. */
  probes(): RailProbes;
  detail(): string | null;
  /** For other processes: settles a stored row, as far as it can be ended now. Never rejects. False elsewhere. */
  carry(id: string): Promise<boolean>;
  /** Null when this process does not settle. */
  report(): LeaderReport | null;
  /** Takes over rows of dead processes: of `dead` at once, of unlisted ones later. Rejects if the ledger is silent. */
  takeOver(dead?: readonly string[]): Promise<void>;
  /** Prepares for the first sale. Calls `maintain` when a round is due before the timer's next one. */
  start(maintain: () => void): Promise<void>;
  /** One round of maintenance apart from the rows: gas, the token, remote services. */
  refresh(): Promise<void>;
  /** One round over the open rows. `isInUse`: another process stored the row, or a call here works on it. */
  reconcile(isInUse: (payment: Payment) => boolean): Promise<void>;
  stop(): Promise<void>;
}

export interface ReportedStatus {
  readonly unavailable: string | null;
  /** Why nothing can be sent. The previous version does not report it: `unavailable` is for both. */
  readonly cannotSend?: string | null | undefined;
  readonly codeRefused: string | null;
  readonly payers: readonly RefusedPayer[];
}

/** What the other processes must know before they sell, as plain JSON, without the rails that are off. */
export interface LeaderReport {
  readonly status: Readonly<Partial<Record<RailName, ReportedStatus>>>;
  readonly probes: RailProbes;
}

/** The process that settles, as this one reaches it. All else is in the ledger's rows. */
export interface LeaderLink {
  report(): LeaderReport | null;
  /** Why the last report no longer counts, so that nothing may be sold; null while it counts. */
  staleReason(): string | null;
  /** Asks for a stored intent to be settled. May be lost. */
  ask(id: string): void;
  /** `listener` hears that such a row has ended, or cannot be ended now. It may hear it twice, or never. */
  onEnded(listener: (id: string) => void): void;
}

/** What an instance does while it holds the lease. */
export interface Leader extends Pick<Settling, 'carry' | 'report' | 'takeOver'> {
  /** Settles for all instances. The ledger checks `fencingToken`, the lease's number, before anything is sent. */
  lead(fencingToken: number): Promise<void>;
  /** Stops at once. Tasks that are running end in the background, at the latest as unknown. */
  stepDown(): void;
}

export type SettledBy =
  | { readonly kind: 'local' }
  | {
      readonly kind: 'switched';
      readonly leader: LeaderLink;
      readonly living: () => readonly string[];
      readonly takeOverAfterMs: number;
      /** Begins to compete for the lease. Rejects when the ledger cannot be reached. */
      join(leader: Leader): Promise<void>;
    };

/** Counts the processes that keep replies in this ledger now, itself among them. They divide the space for replies. */
export function sharersOf(settledBy: SettledBy | undefined): () => number {
  // Before the first heartbeat is answered, an instance knows of itself alone.
  return () => (settledBy?.kind === 'switched' ? Math.max(1, settledBy.living().length) : 1);
}

type StatusSource = Pick<Settler, 'unavailable' | 'cannotSend' | 'refuses' | 'refused' | 'refusesCode'>;

interface LocalSettlingOptions {
  ledger: Pick<Ledger, 'waiting'>;
  rows: Pick<SettleRows, 'settle' | 'resume' | 'carry' | 'reconcile' | 'idle'>;
  settlers: Readonly<Record<RailName, StatusSource>>;
  probes(): RailProbes;
  detail(): string | null;
  takeOver: Settling['takeOver'];
  /** Whether other processes serve over the same ledger. Then each round also takes over the rows of dead ones. */
  isShared: boolean;
  load(): Promise<void>;
  refresh(): Promise<void>;
  stopSettlers(): Promise<void>;
}

export interface LocalSettling extends Settling {
  /** `start` does this too, after it has taken over the rows of dead processes. */
  load(): Promise<void>;
  /** Settles every intent without a transaction. A row that has a running task is not started again. */
  carryWaiting(): Promise<void>;
  report(): LeaderReport;
}

/** A rail that is off has no faults. */
const OFF: SettlerStatus = {
  unavailable: () => null,
  cannotSend: () => null,
  refuses: () => null,
  refusesCode: () => null,
};

export function createLocalSettling(options: LocalSettlingOptions): LocalSettling {
  const { ledger, rows, settlers, probes, takeOver, load } = options;
  const statuses = new Map(Object.entries(settlers).map(([rail, settler]) => [rail, statusOf(settler)]));

  async function carry(id: string): Promise<boolean> {
    await rows.carry(id).catch(() => {});
    return true;
  }

  return {
    settle: rows.settle,
    resume: rows.resume,
    status: (rail) => statuses.get(rail) ?? OFF,
    probes,
    detail: options.detail,
    carry,
    carryWaiting: async () => {
      for await (const { id } of ledger.waiting()) void carry(id);
    },
    report: () => {
      const reported = Object.entries(settlers).map(([rail, settler]) => [rail, reportOf(settler)]);
      return { status: Object.fromEntries(reported), probes: probes() };
    },
    takeOver,
    load,
    start: async () => {
      await takeOver();
      await load();
    },
    refresh: options.refresh,
    reconcile: async (isInUse) => {
      if (options.isShared) await takeOver();
      // The process that serves a row keeps it until a transaction is noted or the row is unknown. Then it belongs to
      // the process that settles, even while its buyer waits here.
      await rows.reconcile(
        (payment) => payment.state !== 'unknown' && payment.transaction === null && isInUse(payment),
      );
    },
    stop: async () => {
      await options.stopSettlers();
      await rows.idle();
    },
  };
}

const cannotSend = (settler: StatusSource): string | null => (settler.cannotSend ?? settler.unavailable)();

function statusOf(settler: StatusSource): SettlerStatus {
  return {
    unavailable: () => settler.unavailable(),
    cannotSend: () => cannotSend(settler),
    refuses: (payer) => settler.refuses?.(payer) ?? null,
    refusesCode: () => settler.refusesCode?.() ?? null,
  };
}

/** The settler itself names whom it refuses: it may come to that long after the payer's settlement has ended. */
function reportOf(settler: StatusSource): ReportedStatus {
  return {
    unavailable: settler.unavailable(),
    cannotSend: cannotSend(settler),
    codeRefused: settler.refusesCode?.() ?? null,
    payers: settler.refused?.() ?? [],
  };
}

/**
 * Takes over rows of processes that are not in `living`, `takeOverAfterMs` after the reservation: an unlisted one may
 * have just started. `living` is undefined where no other process uses the ledger.
 */
export function createRecovery(
  { clock, log }: Common,
  ledger: Pick<Ledger, 'recover'>,
  living: (() => readonly string[]) | undefined,
  takeOverAfterMs: number,
): Settling['takeOver'] {
  return async (dead = []) => {
    const isGone = ({ bootId, reservedAt }: Payment) =>
      dead.includes(bootId) || reservedAt <= clock.nowMs() - takeOverAfterMs;
    const left = await ledger.recover(living, isGone);
    if (left.released + left.unknown > 0) log.warn(left, 'took over payments of a process that died');
  };
}

/** Between two probes. A service's `/supported` changes when its operator deploys. */
const INTERVAL_MS = 60_000;
/** After a failed probe. One lost answer must not keep the service unready for a minute. */
const AGAIN_MS = 5_000;

/** Keeps the last probe of each remote service, so that `/readyz` sends no request. */
export function createRailWatch(probe: () => Promise<RailProbes>, clock: Clock, log: Pick<Log, 'warn'>) {
  let latest: RailProbes = {};
  let probedMs: number | null = null;

  return {
    /** Probes when the last probe is old enough. Logs when a service starts to fail. */
    refresh: async (): Promise<void> => {
      const pauseMs = Object.values(latest).every(({ ok }) => ok) ? INTERVAL_MS : AGAIN_MS;
      if (probedMs !== null && clock.nowMs() - probedMs < pauseMs) return;
      probedMs = clock.nowMs();
      const before = latest;
      latest = await probe();
      for (const [rail, { ok, detail }] of Object.entries(latest))
        if (!ok && before[rail]?.ok !== false)
          log.warn({ rail, detail }, 'a remote service does not settle our payments');
    },
    latest: (): RailProbes => latest,
  };
}

export function createMaintenance(
  log: Pick<Log, 'info' | 'warn'>,
  settling: Pick<Settling, 'start' | 'refresh' | 'reconcile' | 'stop'>,
  isInUse: (payment: Payment) => boolean,
  intervalMs: number,
) {
  let timer: NodeJS.Timeout | undefined;
  // Two separate rounds, so that a long reconciliation does not delay the check of the relayer's balance.
  const refreshing = createRounds(() => settling.refresh(), log);
  const reconciling = createRounds(() => settling.reconcile(isInUse), log);
  const round = (): void => {
    void refreshing();
    void reconciling();
  };

  return {
    failing: () => ({ refresh: refreshing.isFailing(), reconcile: reconciling.isFailing() }),
    /** Resolves when the first call may be sold. Rejects when the ledger cannot be read. */
    start: async (): Promise<void> => {
      await settling.start(round);
      // Not awaited, so that a slow chain does not delay the free routes.
      round();
      timer = setInterval(round, intervalMs);
    },
    stop: async (): Promise<void> => {
      clearInterval(timer);
      await settling.stop();
      await Promise.all([refreshing.idle(), reconciling.idle()]);
    },
  };
}
