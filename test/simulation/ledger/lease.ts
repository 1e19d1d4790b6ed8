import type { InstancesStore } from '../seam.ts';

interface Lease {
  holder: string | null;
  fence: number;
  untilMs: number;
  said: string | null;
  /** Notes that are being written under it: meanwhile it does not change hands. */
  held: number;
}

/** One row for each instance and one for the lease, as the shared database has them; each method is one atomic step by the database's own clock. */
export function createLease(nowMs: () => number) {
  const seen = new Map<string, number>();
  const lease: Lease = { holder: null, fence: 0, untilMs: 0, said: null, held: 0 };

  function resign(bootId: string): void {
    if (lease.holder === bootId) Object.assign(lease, { untilMs: 0, said: null });
  }

  /** The number under which this one leads from now on; null where another one does. */
  function take(bootId: string, leaseMs: number): number | null {
    const untilMs = nowMs() + leaseMs;
    if (lease.holder === bootId) {
      lease.untilMs = untilMs;
      return lease.fence;
    }
    if (lease.untilMs > nowMs() || lease.held > 0) return null;
    Object.assign(lease, { fence: lease.fence + 1, said: null, holder: bootId, untilMs });
    return lease.fence;
  }

  const store: InstancesStore = {
    beat: async (bootId, leaseMs, livingMs) => {
      seen.set(bootId, nowMs());
      const fence = take(bootId, leaseMs);
      const said = lease.untilMs > nowMs() ? lease.said : null;
      const isLiving = (at: number) => at > nowMs() - livingMs;
      const named = (living: boolean) => [...seen].filter(([, at]) => isLiving(at) === living).map(([id]) => id);
      return { fence, living: named(true), dead: named(false), said };
    },
    say: async (fence, text) => {
      if (lease.fence !== fence || lease.untilMs <= nowMs()) return false;
      lease.said = text;
      return true;
    },
    bury: async (bootId) => {
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
    async under<T>(fence: number | undefined, write: () => Promise<T>, otherwise: T): Promise<T> {
      if (fence === undefined) return write();
      if (fence !== lease.fence) return otherwise;
      lease.held += 1;
      try {
        return await write();
      } finally {
        lease.held -= 1;
      }
    },
  };
}
