import { type Clock, utcDay } from '../lib/clock.ts';
import type { FacilitatorCounts, LightningStore } from '../store/ports/proofs.ts';

/** The greatest age of the figures. The claim's own transaction checks the caps again, exactly. */
const FRESH_MS = 1000;

/** Counts the facilitator's claims. Every method that returns a promise rejects when the store does not answer. */
export interface Counts {
  /** The ledger's figures of the current UTC day, at most a second old. */
  current(): Promise<FacilitatorCounts>;
  /** The day's figures with every claim that this process has recorded, for who looks right after a claim. */
  withOwnClaims(): Promise<FacilitatorCounts>;
  /** An upper bound of today's claims. A cap above it is not reached. */
  atMostToday(): Promise<number>;
  /** Whether the day's cap is reached. */
  isDayFull(): Promise<boolean>;
  /** Records one more claim of this process. */
  claimed(): void;
}

interface CountsOptions {
  readonly store: Pick<LightningStore, 'facilitatorCounts'>;
  readonly clock: Clock;
  readonly dailyCap: number;
  /** Our node's key in hex; null while there is none. */
  readonly ownPayTo: () => string | null;
}

interface Snapshot {
  readonly day: string;
  readonly readAtMs: number;
  readonly counts: Promise<FacilitatorCounts>;
}

/** Reads the ledger's figures at most once a second for all callers, because the descriptor is public and every settle call needs the day's count. */
export function createCounts({ store, clock, dailyCap, ownPayTo }: CountsOptions): Counts {
  let snapshot: Snapshot | null = null;
  // Claims of this process since the read began. The snapshot may already include some of them.
  let claimedSince = 0;

  function read(day: string, now: number): Promise<FacilitatorCounts> {
    const own = ownPayTo();
    const counts = store.facilitatorCounts(day, own === null ? null : Buffer.from(own, 'hex'));
    const taken = { day, readAtMs: now, counts };
    snapshot = taken;
    claimedSince = 0;
    counts.catch(() => {
      if (snapshot === taken) snapshot = null;
    });
    return counts;
  }

  function current(): Promise<FacilitatorCounts> {
    const now = clock.nowMs();
    const day = utcDay(now);
    // `abs`, because a clock that was set back must not keep old figures until it catches up.
    const isFresh = snapshot?.day === day && Math.abs(now - snapshot.readAtMs) < FRESH_MS;
    return snapshot && isFresh ? snapshot.counts : read(day, now);
  }

  function readNow(): Promise<FacilitatorCounts> {
    const now = clock.nowMs();
    return read(utcDay(now), now);
  }

  return {
    current,
    withOwnClaims: () => (claimedSince === 0 ? current() : readNow()),
    atMostToday: async () => (await current()).today + claimedSince,
    async isDayFull() {
      const { today } = await current();
      if (today >= dailyCap || today + claimedSince < dailyCap) return today >= dailyCap;
      return (await readNow()).today >= dailyCap;
    },
    claimed() {
      claimedSince += 1;
    },
  };
}
