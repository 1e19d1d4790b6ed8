import type { Ledger } from './ledger.ts';
import type { RailName } from './rail.ts';
import type { Settlement } from './settlement.ts';
import type { Settler } from './settler.ts';
import type {
  MaintainedSettling,
  RailProbes,
  RailStatus,
  ReportedStatus,
  SettlesForOthers,
  SettlingReport,
} from './settling.ts';

type StatusSource = Pick<Settler, 'unavailable' | 'cannotSend' | 'refuses' | 'refused' | 'refusesCode'>;

interface LocalSettlingOptions {
  ledger: Pick<Ledger, 'waiting'>;
  settlement: Pick<Settlement, 'settle' | 'resume' | 'carry' | 'reconcile' | 'idle'>;
  /** The settler of each rail that is on. */
  settlers: Readonly<Record<RailName, StatusSource>>;
  probes(): RailProbes;
  detail(): string | null;
  takeOver: SettlesForOthers['takeOver'];
  /** Whether other processes serve over the same ledger. Then each round also takes over the rows of dead ones. */
  isShared: boolean;
  /** Loads what the settlers need before they settle. */
  load(): Promise<void>;
  refresh(): Promise<void>;
  stopSettlers(): Promise<void>;
}

/** Settlement by this process, for itself and for the other processes of the service. */
export interface LocalSettling extends MaintainedSettling {
  /** Loads what the settlers need. `start` does this too, after it has taken over the rows of dead processes. */
  load(): Promise<void>;
  /** Settles every intent without a transaction. A row that has a running task is not started again. */
  carryWaiting(): Promise<void>;
  report(): SettlingReport;
}

const OFF: RailStatus = {
  unavailable: () => null,
  cannotSend: () => null,
  refuses: () => null,
  refusesCode: () => null,
};

/** Settles by this process's own settlers. */
export function createLocalSettling(options: LocalSettlingOptions): LocalSettling {
  const { ledger, settlement, settlers, probes, takeOver, load } = options;
  const statuses = new Map(Object.entries(settlers).map(([rail, settler]) => [rail, statusOf(settler)]));

  async function carry(id: string): Promise<boolean> {
    await settlement.carry(id).catch(() => {});
    return true;
  }

  return {
    settle: settlement.settle,
    resume: settlement.resume,
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
      // The process that serves a row keeps it until a transaction is noted or the row is unknown. From then on the row belongs to the process that
      // settles, even while its buyer waits here. If another process settled before, only this one continues with the row.
      await settlement.reconcile(
        (payment) => payment.state !== 'unknown' && payment.transaction === null && isInUse(payment),
      );
    },
    stop: async () => {
      await options.stopSettlers();
      await settlement.idle();
    },
  };
}

const cannotSend = (settler: StatusSource): string | null => (settler.cannotSend ?? settler.unavailable)();

function statusOf(settler: StatusSource): RailStatus {
  return {
    unavailable: () => settler.unavailable(),
    cannotSend: () => cannotSend(settler),
    refuses: (payer) => settler.refuses?.(payer) ?? null,
    refusesCode: () => settler.refusesCode?.() ?? null,
  };
}

/** The settler itself names the payers that it refuses. It may come to refuse a payer long after that payer's settlement has ended. */
function reportOf(settler: StatusSource): ReportedStatus {
  return {
    unavailable: settler.unavailable(),
    cannotSend: cannotSend(settler),
    codeRefused: settler.refusesCode?.() ?? null,
    payers: settler.refused?.() ?? [],
  };
}
