import { bytesToHex, hexToBytes } from '../lib/hex.ts';
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

interface LocalSettlingOptions {
  ledger: Pick<Ledger, 'get' | 'waiting'>;
  settlement: Pick<Settlement, 'settle' | 'resume' | 'carry' | 'reconcile' | 'idle'>;
  /** The settler of each rail that is on. */
  settlers: Readonly<Partial<Record<RailName, Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>>>>;
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

const OFF: RailStatus = { unavailable: () => null, refuses: () => null, refusesCode: () => null };

/** Settles by this process's own settlers. */
export function createLocalSettling(options: LocalSettlingOptions): LocalSettling {
  const { ledger, settlement, settlers, probes, takeOver, load } = options;
  const statuses = new Map(Object.entries(settlers).map(([rail, settler]) => [rail, statusOf(settler)]));
  const refusals = createRefusedPayers([...statuses.values()]);

  async function carry(id: string): Promise<boolean> {
    const before = await ledger.get(id).catch(() => null);
    await settlement.carry(id).catch(() => {});
    if (before) refusals.note(before.payer);
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
      const reported = [...statuses].map(([rail, status]): [string, ReportedStatus] => [
        rail,
        { unavailable: status.unavailable(), codeRefused: status.refusesCode(), payers: refusals.of(status) },
      ]);
      refusals.forgetOld();
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

function statusOf(settler: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>): RailStatus {
  return {
    unavailable: () => settler.unavailable(),
    refuses: (payer) => settler.refuses?.(payer) ?? null,
    refusesCode: () => settler.refusesCode?.() ?? null,
  };
}

/** The payers that settlers refuse, in hex. Only its own settlement can make a payer refused, so each settlement is noted here. */
function createRefusedPayers(statuses: readonly RailStatus[]) {
  const suspects = new Set<string>();
  const isRefused = (payer: Uint8Array): boolean => statuses.some(({ refuses }) => refuses(payer) !== null);

  return {
    note: (payer: Uint8Array): void => {
      if (isRefused(payer)) suspects.add(bytesToHex(payer));
    },
    of: ({ refuses }: RailStatus) =>
      [...suspects].flatMap((payer) => {
        const reason = refuses(hexToBytes(payer));
        return reason === null ? [] : [[payer, reason] as const];
      }),
    forgetOld: (): void => {
      for (const payer of suspects) if (!isRefused(hexToBytes(payer))) suspects.delete(payer);
    },
  };
}
