/** Without a heartbeat for this long, in milliseconds, an instance is dead: what it left open is taken over. Longer than a lease, so that the leader's own is. */
export const LIVING_MS = 15_000;

/** What one instance learns when it says that it lives. Times by the ledger's own clock, so that instances' clocks need not agree. */
export interface Standing {
  /** The number of the lease where it is this instance's; null where another one leads. It grows by one whenever the lease changes hands. */
  readonly fencingToken: number | null;
  /** Every instance that has said so within the time asked for, this one among them. */
  readonly living: readonly string[];
  /** Those that have not, and whose open work nobody has taken over yet. */
  readonly dead: readonly string[];
  /** The leader's last report; null before its first one and once its lease is over. */
  readonly reported: string | null;
}

/**
 * How instances of one service know of each other, over the ledger that they share. One of them leads: it does what must be done once.
 * Every method is one atomic step; it rejects when the ledger cannot be asked, and then nothing may be counted on.
 */
export interface InstancesStore {
  /** Says that this instance lives, and takes the lease where it is free, over, or its own: for so many milliseconds from now. */
  heartbeat(bootId: string, leaseMs: number, livingMs: number): Promise<Standing>;
  /** Keeps the leader's report to the other instances; false when the lease of this number is over. */
  report(fencingToken: number, text: string): Promise<boolean>;
  /**
   * Says that an instance lives no more, for whoever knows it for certain: the next beat of the leader tells it among the dead, and its lease
   * is free. One that lives all the same is back at its own next beat, and leads on if nobody took the lease before.
   */
  markDead(bootId: string): Promise<void>;
  /** Strikes an instance off, once everything that it left has been taken over. */
  forget(bootId: string): Promise<void>;
  /** Gives up the lease, if it is this instance's, and strikes it off: another one leads at its next beat. */
  leave(bootId: string): Promise<void>;
}

/** Quick notifications between instances. What is lost costs time and nothing else: everything that counts stands in the ledger. */
export interface Notifications {
  /** These rows wait for a settlement. */
  ask(id: string): void;
  /** These rows have ended, or cannot be brought to an end now. */
  reportEnded(id: string): void;
  onAsked(listener: (id: string) => void): void;
  onEnded(listener: (id: string) => void): void;
  close(): Promise<void>;
}
