import type { Ledger } from './ledger.ts';
import type { Settlement } from './settlement.ts';
import type { Settler } from './settler.ts';
import type {
  MaintainedSettling,
  RailName,
  RailProbes,
  RailStatus,
  ReportedStatus,
  SettlesForOthers,
  SettlingReport,
} from './settling.ts';

type StatusSource = Pick<Settler, 'unavailable' | 'refuses' | 'refused' | 'refusesCode'>;

interface LocalSettlingOptions {
  ledger: Pick<Ledger, 'waiting'>;
  settlement: Pick<Settlement, 'settle' | 'resume' | 'carry' | 'reconcile' | 'idle'>;
  /** Of each rail that is on. */
  settlers: Readonly<Partial<Record<RailName, StatusSource>>>;
  probes(): RailProbes;
  detail(): string | null;
  takeOver: SettlesForOthers['takeOver'];
  /** Whether other processes serve over the same ledger; then each round takes over what dead ones left. */
  isShared: boolean;
  /** Reads what the settlers must know before they settle. */
  load(): Promise<void>;
  refresh(): Promise<void>;
  stopSettlers(): Promise<void>;
}

/** Settlement by this process, for itself and for those that serve beside it. */
export interface LocalSettling extends MaintainedSettling {
  /** What `start` does where no other process has settled before this one. */
  load(): Promise<void>;
  /** Begins with every intent that no transaction was sent for yet. A row that is worked on already is not begun again. */
  carryWaiting(): Promise<void>;
  report(): SettlingReport;
}

const OFF: RailStatus = { unavailable: () => null, refuses: () => null, refusesCode: () => null };

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
      // The process that serves a row has it until a transaction is noted or the row is unknown. From then on the row belongs to the process
      // that settles: where another one settled before, no other goes on with it, though its buyer may wait at this very process.
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

function statusOf(settler: StatusSource): RailStatus {
  return {
    unavailable: () => settler.unavailable(),
    refuses: (payer) => settler.refuses?.(payer) ?? null,
    refusesCode: () => settler.refusesCode?.() ?? null,
  };
}

/** The settler itself names the payers that it refuses: it may come to refuse one when that payer's settlement has long ended. */
function reportOf(settler: StatusSource): ReportedStatus {
  return {
    unavailable: settler.unavailable(),
    codeRefused: settler.refusesCode?.() ?? null,
    payers: settler.refused?.() ?? [],
  };
}
