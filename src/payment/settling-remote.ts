import type { Common, Log } from '../lib/common.ts';
import { bytesToHex } from '../lib/hex.ts';
import { createRounds } from '../lib/tasks.ts';
import type { Payment } from '../store/ports/payments.ts';
import type { Ledger } from './ledger.ts';
import type { Leader, LeaderLink, LocalSettling, ReportedStatus, Settling } from './settling.ts';

// Settlement by another process, and by whichever instance leads. This process stores the intent in the ledger and
// asks; the other settles it and writes down its end. A request and its answer can be lost, so only the row counts.

/** Between two reads of the row: a lost notification only costs time. */
const POLL_MS = 250;

/** Rows of dead processes are the switch's to take over. */
type RemoteSettling = Omit<Settling, 'takeOver'>;

/** `onLeft` is told the state of a row once no call of this process waits for it. It must not throw. */
export function createRemoteSettling(
  { clock, log }: Common,
  ledger: Ledger,
  leader: LeaderLink,
  waitMs: number,
  onLeft?: (id: string, state: Payment['state'] | null) => void,
): RemoteSettling {
  const waiting = createWaiting();
  leader.onEnded(waiting.wake);

  /** Returns the row once it has ended, cannot be ended now, or `waitMs` have passed. */
  async function untilEnded(id: string): Promise<Payment | null> {
    const { nap, forget } = waiting.listen(id);
    const until = clock.nowMs() + waitMs;
    try {
      leader.ask(id);
      for (;;) {
        const pauseMs = Math.max(0, Math.min(POLL_MS, until - clock.nowMs()));
        await clock.sleep(pauseMs, nap.signal).catch(() => {});
        const row = await ledger.get(id);
        const isOpen = row?.state === 'settling' || row?.state === 'unknown';
        if (!isOpen || nap.signal.aborted || clock.nowMs() >= until) return row;
      }
    } finally {
      forget();
    }
  }

  async function settle({ id }: { readonly id: string }): Promise<Payment | null> {
    let row: Payment | null = null;
    try {
      row = await untilEnded(id);
      if (row?.state !== 'settling') return row;
      await ledger.unknown(id);
      row = await ledger.get(id);
      return row;
    } finally {
      onLeft?.(id, row?.state ?? null);
    }
  }

  return {
    settle,
    resume: settle,
    ...createReportedStatus(leader),
    detail: () => null,
    carry: async () => false,
    report: () => null,
    // Counts the kept replies before the first call is sold.
    start: () => ledger.purge().catch((err: unknown) => log.warn({ err }, 'maintenance failed')),
    refresh: async () => {},
    /** Gives up rows without a call here: releases reservations, marks intents unknown for the process that settles. */
    reconcile: async (isInUse) => {
      for await (const payment of ledger.unfinished()) {
        if (isInUse(payment)) continue;
        if (payment.state === 'reserved') await ledger.release(payment.id);
        else if (payment.state === 'settling') await ledger.unknown(payment.id);
      }
      await ledger.purge();
    },
    stop: async () => {},
  };
}

/** `wake` makes each call that waits for a row read it now. */
function createWaiting() {
  const naps = new Map<string, Set<AbortController>>();
  return {
    wake: (id: string): void => {
      for (const nap of naps.get(id) ?? []) nap.abort();
    },
    listen: (id: string): { nap: AbortController; forget(): void } => {
      const nap = new AbortController();
      const others = naps.get(id) ?? new Set();
      naps.set(id, others.add(nap));
      const forget = () => {
        others.delete(nap);
        if (others.size === 0) naps.delete(id);
      };
      return { nap, forget };
    },
  };
}

/** Between two reads of waiting rows: the longest delay of a settlement whose request did not reach the leader. */
const SWEEP_MS = 1000;

/** Settles by this instance from `lead` to `stepDown`, by the leader at all other times. */
export function createSwitchedSettling(
  log: Log,
  remote: RemoteSettling,
  openLocal: (fencingToken: number) => LocalSettling,
  takeOver: Leader['takeOver'],
  join: (leader: Leader) => Promise<void>,
): Settling {
  let current: RemoteSettling = remote;
  let stopSweep = async (): Promise<void> => {};
  let ending: Promise<unknown> = Promise.resolve();

  /** A request can be lost, or its receiver can lose the lease. So the leader also reads the ledger's rows. */
  function startSweep(local: LocalSettling): void {
    const sweep = createRounds(local.carryWaiting, log);
    const timer = setInterval(sweep, SWEEP_MS);
    stopSweep = () => {
      clearInterval(timer);
      return sweep.idle();
    };
  }

  /** Rejects when the settlers cannot be loaded. The caller then steps down. */
  async function lead(fencingToken: number): Promise<void> {
    const local = openLocal(fencingToken);
    current = local;
    await local.load();
    // This instance may have stepped down during the load.
    if (current === local) startSweep(local);
  }

  function stepDown(): void {
    const left = current;
    current = remote;
    ending = Promise.all([ending, left.stop(), stopSweep()]);
  }

  const carry: Leader['carry'] = (id) => current.carry(id);
  const report: Leader['report'] = () => current.report();

  return {
    settle: (intent, contract) => current.settle(intent, contract),
    resume: (payment) => current.resume(payment),
    status: (rail) => current.status(rail),
    probes: () => current.probes(),
    detail: () => current.detail(),
    carry,
    report,
    takeOver,
    start: async (maintain) => {
      const leadAndMaintain = async (fencingToken: number): Promise<void> => {
        await lead(fencingToken);
        maintain();
      };
      await join({ lead: leadAndMaintain, stepDown, carry, report, takeOver });
      // Who has joined knows among how many instances the space for replies is divided.
      await remote.start(maintain);
    },
    refresh: () => current.refresh(),
    reconcile: (isInUse) => current.reconcile(isInUse),
    stop: async () => {
      await Promise.all([current.stop(), stopSweep(), ending]);
    },
  };
}

/** Reads the last report of the process that settles. While none counts, every rail is unavailable. */
function createReportedStatus({
  report,
  staleReason,
}: Pick<LeaderLink, 'report' | 'staleReason'>): Pick<Settling, 'status' | 'probes'> {
  return {
    status: (rail) => {
      const reported = (): ReportedStatus | undefined => report()?.status[rail];
      return {
        unavailable: () => staleReason() ?? reported()?.unavailable ?? null,
        cannotSend: () => {
          const { unavailable = null, cannotSend = unavailable } = reported() ?? {};
          return staleReason() ?? cannotSend;
        },
        refusesCode: () => reported()?.codeRefused ?? null,
        refuses: (payer) => {
          const payers = reported()?.payers ?? [];
          if (payers.length === 0) return null;
          const hex = bytesToHex(payer);
          return payers.find(([refused]) => refused === hex)?.[1] ?? null;
        },
      };
    },
    probes: () => report()?.probes ?? {},
  };
}
