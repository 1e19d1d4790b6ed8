import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/in-time.ts';
import { type InstancesStore, LIVING_MS, type Standing } from '../store/ports/instances.ts';

/** How often an instance sends a heartbeat to the ledger, in milliseconds. */
const HEARTBEAT_MS = 1000;
/** A leader whose last heartbeat is older may be replaced. */
const LEASE_MS = 6000;
/** It steps down by itself so much earlier, so that two lead at most where clocks run at different speeds or a process was paused. */
const MARGIN_MS = 1500;
/** When the ledger has not answered for this long, the leader's last report counts no longer. */
const HEARTBEAT_TIMEOUT_MS = 5000;
/** A heartbeat that takes longer has failed: the lease must not run out behind it, nor a leader go on because it waits. */
const PATIENCE_MS = 2000;

/** What an instance does beside serving while it leads. */
export interface Leading {
  /** Begins; the ledger checks the fencing token before anything is sent. A rejection is tried again, after `stepDown`. */
  lead(fencingToken: number): Promise<void>;
  /** Ends, whatever is under way; what is left open is the next leader's. */
  stepDown(): void;
  /** Takes over what these instances left, beside the heartbeats, however much it is. A rejection is tried again at the next heartbeat. */
  takeOver(dead: readonly string[]): Promise<void>;
  /** What the others must know, as text; null while there is nothing to report. */
  report(): string | null;
}

interface MembershipOptions {
  store: InstancesStore;
  bootId: string;
  clock: Clock;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

/** This instance among those that share a ledger. */
export interface Membership {
  /** Whether this one leads now, for certain. */
  leads(): boolean;
  living(): readonly string[];
  /** The leader's last report; null when there is none, or the ledger has not answered for too long. */
  reported(): string | null;
  /** Resolves after the first heartbeat, rejects when it fails. */
  start(leading: Leading): Promise<void>;
  /** Steps down and gives the lease up, so that another instance may take it. */
  stop(): Promise<void>;
}

/**
 * Keeps this instance among the living, and lets one of all lead.
 * 1. A heartbeat a second says that it lives and takes the lease where it may. The lease counts from before the heartbeat was sent.
 * 2. The instance that gains it begins to lead with the lease's fencing token. One that cannot renew it in time steps down by itself.
 * 3. The leader takes over what dead instances left, and strikes them off; the heartbeats go on meanwhile.
 * A paused leader may believe for a moment that it still leads: the ledger then refuses its fencing token.
 */
export function createMembership({ store, bootId, clock, log }: MembershipOptions): Membership {
  const ended = new AbortController();
  const lease = createLease(store, bootId, clock);
  const term = createTerm(log);
  const takeOver = createTakeOver(store, log);
  let loop: Promise<void> | null = null;

  async function turn(leading: Leading): Promise<void> {
    const standing = await lease.renew().catch((err: unknown) => {
      log.warn({ err }, 'the ledger does not hear that this instance lives');
      return null;
    });
    // Read again: between the answer and this line the process may have been paused.
    const fencingToken = lease.isHeld() ? (standing?.fencingToken ?? term.token()) : null;
    if (term.token() !== null && fencingToken !== term.token()) {
      log.warn({ fencingToken: term.token() }, 'this instance leads no more');
      term.end(leading);
    }
    if (fencingToken === null || standing === null) return;
    if (term.token() === null) await term.begin(leading, fencingToken);
    if (standing.dead.length > 0) takeOver.begin(leading, standing.dead);
    const report = leading.report();
    if (report !== null) await inPatience(store.report(fencingToken, report), clock);
  }

  async function run(leading: Leading): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, ended.signal).catch(() => {});
      if (ended.signal.aborted) return;
      await turn(leading).catch((err: unknown) => log.warn({ err }, 'a turn of leading failed'));
    }
  }

  return {
    leads: () => term.token() !== null && lease.isHeld(),
    living: () => lease.standing()?.living ?? [],
    reported: () => (lease.isHeard() ? (lease.standing()?.reported ?? null) : null),
    start: async (leading) => {
      await turn(leading);
      if (lease.standing() === null) throw new Error('the ledger cannot be reached');
      loop = run(leading).finally(async () => {
        if (term.token() !== null) term.end(leading);
        await takeOver.idle();
      });
    },
    stop: async () => {
      ended.abort();
      await loop;
      await inPatience(store.leave(bootId), clock).catch(() => {});
    },
  };
}

const inPatience = <T>(asked: Promise<T>, clock: Clock): Promise<T> =>
  inTime(asked, PATIENCE_MS, clock, () => new Error(`the ledger did not answer in ${PATIENCE_MS} ms`));

/** The lease as the last heartbeat found it. */
function createLease(store: InstancesStore, bootId: string, clock: Clock) {
  let standing: Standing | null = null;
  let heardMs = Number.NEGATIVE_INFINITY;
  let heldUntilMs = Number.NEGATIVE_INFINITY;

  return {
    /** Sends a heartbeat. Rejects when the ledger does not answer in time; then everything is as before. */
    renew: async (): Promise<Standing> => {
      const askedMs = clock.nowMs();
      const renewed = await inPatience(store.heartbeat(bootId, LEASE_MS, LIVING_MS), clock);
      standing = renewed;
      heardMs = askedMs;
      heldUntilMs = renewed.fencingToken === null ? Number.NEGATIVE_INFINITY : askedMs + LEASE_MS - MARGIN_MS;
      return renewed;
    },
    isHeld: (): boolean => clock.nowMs() < heldUntilMs,
    isHeard: (): boolean => clock.nowMs() - heardMs <= HEARTBEAT_TIMEOUT_MS,
    standing: (): Standing | null => standing,
  };
}

/** One time of leading: the fencing token stands from the beginning of `lead` to `stepDown`. */
function createTerm(log: MembershipOptions['log']) {
  let token: number | null = null;

  function end(leading: Leading): void {
    token = null;
    leading.stepDown();
  }

  return {
    token: (): number | null => token,
    begin: async (leading: Leading, fencingToken: number): Promise<void> => {
      log.info({ fencingToken }, 'this instance leads');
      token = fencingToken;
      try {
        await leading.lead(fencingToken);
      } catch (error) {
        // Half of it may have begun: it ends, so that the next turn begins anew.
        end(leading);
        throw error;
      }
    },
    end,
  };
}

/** Takes over what dead instances left, once at a time, while the heartbeats go on. */
function createTakeOver(store: InstancesStore, log: MembershipOptions['log']) {
  let running: Promise<void> | null = null;

  async function run(leading: Leading, dead: readonly string[]): Promise<void> {
    try {
      await leading.takeOver(dead);
      for (const one of dead) await store.forget(one);
    } catch (err) {
      log.warn({ err, instances: dead.length }, 'what dead instances left was not taken over');
    } finally {
      running = null;
    }
  }

  return {
    begin: (leading: Leading, dead: readonly string[]): void => {
      running ??= run(leading, dead);
    },
    idle: async (): Promise<void> => running ?? undefined,
  };
}
