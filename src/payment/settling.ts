import type { Payment } from '../store/ports/sales.ts';
import type { RailName } from './rail.ts';
import type { Intent, RailProbe, RefusedPayer, Settler } from './settler.ts';

/** The status of a rail's settler. Every member answers from memory. A rail that is off has no faults. */
export interface RailStatus extends Required<Pick<Settler, 'unavailable' | 'cannotSend' | 'refuses' | 'refusesCode'>> {
  /**
   * Why no sale begins although the settler works, or null: no two RPC providers can confirm it, or the chain lacks
   * money that the ledger has. It is in
   * `unavailable` too. Absent where nothing stops sales.
   */
  stopsSales?(): string | null;
}

/** The last probe of each remote service, by the service's name in `/readyz`. */
export type RailProbes = Readonly<Record<string, RailProbe>>;

/** Settles the payments that this process sells. It is the same in every process, whichever process settles. */
export interface Settling {
  /**
   * Settles a fresh intent of the rail with this contract. Waits SETTLE_WAIT_MS at the most and returns the row. A row that is open then is `unknown`
   * and may still end. Null when the row no longer exists. Rejects when the ledger cannot be read or written.
   */
  settle(intent: Intent, contract: Uint8Array): Promise<Payment | null>;
  /** The same for a row whose payment the evidence may show already. */
  resume(payment: Payment): Promise<Payment | null>;
  status(rail: RailName): RailStatus;
  /** The last probes. Empty where no remote service is used, and before the first answer. */
  probes(): RailProbes;
  /** A note for the operator although settlement works; null without one. */
  detail(): string | null;
}

/** One rail's status, as the process that settles reports it to the others. */
export interface ReportedStatus {
  readonly unavailable: string | null;
  /** Why nothing can be sent; null where it can. The previous version does not report it: `unavailable` is for both. */
  readonly cannotSend?: string | null | undefined;
  /** Why payers with code are refused; null where they are not. */
  readonly codeRefused: string | null;
  /** The payers that are refused now. */
  readonly payers: readonly RefusedPayer[];
}

/** What the other processes must know before they sell, as plain JSON. It omits rails that are off. */
export interface SettlingReport {
  readonly status: Readonly<Partial<Record<RailName, ReportedStatus>>>;
  readonly probes: RailProbes;
}

/** The process that settles, as this one reaches it. It finds everything else in the ledger's rows. */
export interface SettlingProcess {
  /** The last report of that process; null while there is none. */
  report(): SettlingReport | null;
  /** Why the last report no longer counts, so that nothing may be sold; null while it counts. */
  staleReason(): string | null;
  /** Asks for a stored intent to be settled. The request may be lost. */
  ask(id: string): void;
  /** Calls `listener` when the row of such an intent has ended, or cannot be ended now. It may call twice, or never. */
  onEnded(listener: (id: string) => void): void;
}

/** What a process does for the other processes of the service. */
export interface SettlesForOthers {
  /**
   * Settles a stored row. Returns when its end is written or cannot be reached now. Returns false at once when this process does not settle. Never
   * rejects.
   */
  carry(id: string): Promise<boolean>;
  /** What the other processes must know before they sell; null when this process does not settle. */
  report(): SettlingReport | null;
  /**
   * Takes over the rows of dead processes: rows of `dead` at once, rows of other unlisted processes after a while. Does nothing in a process that
   * never settles. Rejects when the ledger cannot be read or written.
   */
  takeOver(dead?: readonly string[]): Promise<void>;
}

/** A settlement with its maintenance. settling-local.ts, settling-remote.ts and settling-switch.ts make one each. */
export interface MaintainedSettling extends Settling, SettlesForOthers {
  /** Prepares for the first sale. Calls `maintain` when a round is due before the timer's next one. */
  start(maintain: () => void): Promise<void>;
  /** One round of maintenance apart from the rows: gas, the token, remote services. */
  refresh(): Promise<void>;
  /** One round over the rows that have not ended. `isInUse`: another process stored the row, or a call here works on it. */
  reconcile(isInUse: (payment: Payment) => boolean): Promise<void>;
  /** Stops the work. Open rows end as unknown. */
  stop(): Promise<void>;
}

/** What an instance does while it holds the lease. */
export interface Leader extends SettlesForOthers {
  /** Starts to settle for all instances. `fencingToken` is the lease's number. The ledger checks it before anything is sent. */
  lead(fencingToken: number): Promise<void>;
  /** Stops settling at once. Tasks that are running end in the background, at the latest as unknown. */
  stepDown(): void;
}

/** Which process settles the payments that this one sells. */
export type SettlingPlace =
  /** This process, which has the ledger for itself. */
  | { readonly kind: 'local' }
  | {
      readonly kind: 'switched';
      /** The leader, while another instance leads. */
      readonly process: SettlingProcess;
      readonly living: () => readonly string[];
      /** Milliseconds after its reservation at which a row of an unlisted process is taken over. */
      readonly takeOverAfterMs: number;
      /** Begins to compete for the lease. Rejects when the ledger cannot be reached. */
      join(leader: Leader): Promise<void>;
    };

/** Counts the processes that keep replies in this one's ledger now, itself among them. They divide the space for replies. */
export function sharersOf(place: SettlingPlace | undefined): () => number {
  // Before the first heartbeat is answered, an instance knows of itself alone.
  return () => (place?.kind === 'switched' ? Math.max(1, place.living().length) : 1);
}
