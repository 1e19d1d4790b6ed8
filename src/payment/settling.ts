import type { Payment } from '../store/ports/sales.ts';
import type { Intent, RefusedPayer, Settler } from './settler.ts';

/** The rails whose payments are settled after the call is served. */
export type RailName = 'usdc-exact' | 'usdc-gateway';

/** How a rail's settler stands. Every member answers from memory, and says nothing against a rail that is off. */
export type RailStatus = Required<Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>>;

/** How a rail's remote service stands, as its last probe found it; `/readyz` shows it. */
export interface RailProbe {
  readonly ok: boolean;
  readonly detail?: string;
  /** The address that sends the service's settlements, where it names one; lower case. */
  readonly sender?: `0x${string}`;
}

export type RailProbes = Readonly<Record<string, RailProbe>>;

/** The settlement of what this process sells. It has the same form in every process, whichever process settles. */
export interface Settling {
  /**
   * Settles a fresh intent of the rail whose contract this is. Waits SETTLE_WAIT_MS at the most and returns the row as it stands then: what is
   * open by then is `unknown`, and may still end. Null where the row is gone. Rejects when the ledger cannot be read or written.
   */
  settle(intent: Intent, contract: Uint8Array): Promise<Payment | null>;
  /** The same for a row whose payment the evidence may show already. */
  resume(payment: Payment): Promise<Payment | null>;
  status(rail: RailName): RailStatus;
  /** The last probe of each remote service by its name in `/readyz`; empty where none is used, or none has answered yet. */
  probes(): RailProbes;
  /** What an operator should know of settlement although it works; null where there is nothing. */
  detail(): string | null;
}

/** One rail's status, as the process that settles reports it to the others. */
export interface ReportedStatus {
  readonly unavailable: string | null;
  /** Why payers with code are refused; null where they are not. */
  readonly codeRefused: string | null;
  /** The payers that are refused now. */
  readonly payers: readonly RefusedPayer[];
}

/** What the other processes must know before they sell, as plain JSON. A rail that is off is not in it. */
export interface SettlingReport {
  readonly status: Readonly<Partial<Record<RailName, ReportedStatus>>>;
  readonly probes: RailProbes;
}

/** Another process that settles, as this one reaches it. That process finds everything else in the ledger's rows. */
export interface SettlingProcess {
  /** Its last report; null while there is none. */
  report(): SettlingReport | null;
  /** Why its last report no longer counts, so that nothing may be sold; null where it counts. */
  silence(): string | null;
  /** Asks for a stored intent to be settled. The request may be lost. */
  ask(id: string): void;
  /** Calls back when such a row has ended, or cannot be brought to an end now. It may call twice, or never. */
  onEnded(listener: (id: string) => void): void;
}

/** What a process does for those that serve beside it. */
export interface SettlesForOthers {
  /**
   * Brings a stored row to its end. Returns when that is written or cannot be done now; false, at once, where this process does not settle.
   * Never rejects.
   */
  carry(id: string): Promise<boolean>;
  /** What the others must know before they sell; null where this process does not settle. */
  report(): SettlingReport | null;
  /**
   * Takes over what dead processes left: the rows of `dead` at once, those of processes that are not known to live after a while. Does nothing
   * in a process that never settles. Rejects when the ledger cannot be read or written.
   */
  takeOver(dead?: readonly string[]): Promise<void>;
}

/** A settlement with the work that keeps it going. settling-local.ts, settling-remote.ts and settling-switch.ts make one each. */
export interface MaintainedSettling extends Settling, SettlesForOthers {
  /** Prepares for the first sale. Calls `maintain` whenever a round of maintenance is due before the timer's next. */
  start(maintain: () => void): Promise<void>;
  /** One round beside the rows: gas, the token, remote services. */
  refresh(): Promise<void>;
  /** One round over the rows that have not ended. `isInUse` tells of a row that another process stored or a call here works on. */
  reconcile(isInUse: (payment: Payment) => boolean): Promise<void>;
  /** Ends the work; what is still open ends as unknown. */
  stop(): Promise<void>;
}

/** What an instance does, and ceases to do, as the lease comes and goes. */
export interface Leader extends SettlesForOthers {
  /** Settles for all instances from here on. `fencingToken` is the lease's number, which the ledger checks before anything is sent. */
  lead(fencingToken: number): Promise<void>;
  /** Ends that at once. What is under way ends in the background, at the latest as unknown. */
  stepDown(): void;
}

/** Where the payments that this process sells are settled. */
export type SettlingPlace =
  | {
      readonly kind: 'local';
      /** Boot ids of the processes that serve beside this one and may be alive; absent where this one has the ledger for itself. */
      readonly living?: () => readonly string[];
    }
  | { readonly kind: 'remote'; readonly process: SettlingProcess }
  | {
      readonly kind: 'switched';
      /** The instance that leads, while it is another one. */
      readonly process: SettlingProcess;
      readonly living: () => readonly string[];
      /** Milliseconds after which the row of a process that is not known to live is taken over. */
      readonly patienceMs: number;
      /** Begins to compete for the lease. Rejects when the ledger cannot be reached. */
      join(leader: Leader): Promise<void>;
    };
