import type { InstancesStore } from '../seam.ts';

interface Lease {
  holder: string | null;
  fencingToken: number;
  untilMs: number;
  reported: string | null;
  /** Notes that are being written under it: meanwhile it does not change hands. */
  held: number;
}

/** One row for each instance and one for the lease, as the shared database has them; each method is one atomic step by the database's own clock. */
export function createLease(nowMs: () => number) {
  const seen = new Map<string, number>();
  const lease: Lease = { holder: null, fencingToken: 0, untilMs: 0, reported: null, held: 0 };

  function resign(bootId: string): void {
    if (lease.holder === bootId) Object.assign(lease, { untilMs: 0, reported: null });
  }

  /** The number under which this one leads from now on; null where another one does. */
  function take(bootId: string, leaseMs: number): number | null {
    const untilMs = nowMs() + leaseMs;
    if (lease.holder === bootId) {
      lease.untilMs = untilMs;
      return lease.fencingToken;
    }
    if (lease.untilMs > nowMs() || lease.held > 0) return null;
    Object.assign(lease, { fencingToken: lease.fencingToken + 1, reported: null, holder: bootId, untilMs });
    return lease.fencingToken;
  }

  const store: InstancesStore = {
    heartbeat: async (bootId, leaseMs, livingMs) => {
      seen.set(bootId, nowMs());
      const fencingToken = take(bootId, leaseMs);
      const reported = lease.untilMs > nowMs() ? lease.reported : null;
      const isLiving = (at: number) => at > nowMs() - livingMs;
      const named = (living: boolean) => [...seen].filter(([, at]) => isLiving(at) === living).map(([id]) => id);
      return { fencingToken, living: named(true), dead: named(false), reported };
    },
    report: async (fencingToken, text) => {
      if (lease.fencingToken !== fencingToken || lease.untilMs <= nowMs()) return false;
      lease.reported = text;
      return true;
    },
    markDead: async (bootId) => {
      resign(bootId);
      if (seen.has(bootId)) seen.set(bootId, 0);
    },
    forget: async (bootId) => void seen.delete(bootId),
    leave: async (bootId) => {
      resign(bootId);
      seen.delete(bootId);
    },
  };

  return {
    store,
    /** Runs a write under a number, or not at all where that one is over; nobody takes the lease meanwhile. */
    async under<T>(fencingToken: number | undefined, write: () => Promise<T>, otherwise: T): Promise<T> {
      if (fencingToken === undefined) return write();
      if (fencingToken !== lease.fencingToken) return otherwise;
      lease.held += 1;
      try {
        return await write();
      } finally {
        lease.held -= 1;
      }
    },
  };
}
