/**
 * An instance without a heartbeat for this long, in milliseconds, is dead: the leader takes over its open payments. It
 * is longer than a lease, so that the lease of a dead leader has ended too.
 */
export const LIVING_MS = 15_000;

/**
 * The answer to an instance's heartbeat. Times are of the ledger's own clock, so that the instances' clocks need not
 * agree.
 */
export interface Standing {
  /**
   * The fencing token when this instance holds the lease; null when another one does. It grows by one whenever another
   * instance takes the lease.
   */
  readonly fencingToken: number | null;
  /** Every instance whose last heartbeat is not older than `livingMs`, this one included. */
  readonly living: readonly string[];
  /** The other instances, until the leader has taken over their open payments. */
  readonly dead: readonly string[];
  /** The leader's last report; null before its first one, and after its lease has ended. */
  readonly reported: string | null;
}

/**
 * How the instances of one service know of each other, over the ledger that they share. One of them leads: it does the
 * work that must be done once. Every method is one atomic step. It rejects when the ledger does not answer; the caller
 * then does not know whether the step was done.
 */
export interface InstancesStore {
  /**
   * Records a heartbeat, and takes or renews the lease for `leaseMs` from now when it is free, has ended, or is this
   * instance's own.
   */
  heartbeat(bootId: string, leaseMs: number, livingMs: number): Promise<Standing>;
  /** Stores the leader's report to the other instances. False when the lease with this fencing token has ended. */
  report(fencingToken: number, text: string): Promise<boolean>;
  /**
   * Marks an instance dead, for a caller that knows it for certain. The leader's next heartbeat lists it as dead, and
   * its lease is free. An instance that lives nevertheless is back with its own next heartbeat. It leads on unless
   * another one has taken the lease.
   */
  markDead(bootId: string): Promise<void>;
  /** Deletes an instance's row. Call it once everything that the instance left has been taken over. */
  forget(bootId: string): Promise<void>;
  /**
   * Gives up the lease when this instance holds it, and deletes this instance's row. Another one takes the lease with
   * its next heartbeat.
   */
  leave(bootId: string): Promise<void>;
}

/**
 * Quick notifications between instances. They may be lost, which only costs time, because all state is in the ledger.
 */
export interface Notifications {
  /** Notifies that this payment waits for a settlement. */
  ask(id: string): void;
  /** Notifies that this payment has ended, or that it cannot end now. */
  reportEnded(id: string): void;
  onAsked(listener: (id: string) => void): void;
  onEnded(listener: (id: string) => void): void;
  close(): Promise<void>;
}
