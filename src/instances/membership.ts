import type { Clock } from '../lib/clock.ts';
import type { Common, Log } from '../lib/common.ts';
import { inTime } from '../lib/tasks.ts';
import { type InstancesStore, LIVING_MS, type Standing } from '../store/ports/instances.ts';

const HEARTBEAT_MS = 1000;
/** After so long without a heartbeat a leader may be replaced. */
const LEASE_MS = 6000;
/** The leader steps down so long before its lease ends: two lead only with unequal clocks, or after a pause. */
const MARGIN_MS = 1500;
/** After so long without an answer of the ledger, the leader's last report does not count. */
const REPORT_AGE_MS = 5000;
/** Time-out of a heartbeat: no lease must end while it waits. */
const ANSWER_MS = 2000;
/** Tried at the start: a ledger that was just opened and does not answer is busy rather than away. */
const FIRST_HEARTBEATS = 5;

export interface Leading {
  /** The ledger checks the token before each broadcast. After a rejection come `stepDown` and `lead` again. */
  lead(fencingToken: number): Promise<void>;
  /** At once. The next leader takes over open payments. */
  stepDown(): void;
  /** Takes over open payments. After a rejection the next heartbeat tries again. */
  takeOver(dead: readonly string[]): Promise<void>;
  /** For the other instances. */
  report(): string | null;
}

export interface Membership {
  /** Whether this instance leads now, within its lease. */
  leads(): boolean;
  living(): readonly string[];
  /** The leader's last report; null without one, or when the ledger has not answered for 5 s. */
  reported(): string | null;
  /** Resolves with the first answered heartbeat. Rejects when none of five is, or when leading cannot begin. */
  start(leading: Leading): Promise<void>;
  /** Steps down and gives up the lease. */
  stop(): Promise<void>;
}

/**
 * Sends this instance's heartbeats, and lets one instance lead.
 * 1. A heartbeat a second marks the instance as living, and takes or renews the lease, counted from before it was sent.
 * 2. Who gets the lease leads with its fencing token, and steps down when it cannot renew in time.
 * 3. The leader takes over dead instances' open payments and deletes their rows. The ledger refuses the token of a
 *    leader that was paused and acts too late.
 */
export function createMembership({ clock, log }: Common, store: InstancesStore, bootId: string): Membership {
  const ended = new AbortController();
  const lease = createLease(store, bootId, clock);
  const term = createTerm(log);
  const takeOver = createTakeOver(store, log);
  let loop: Promise<void> | null = null;

  async function step(leading: Leading): Promise<void> {
    const standing = await lease.renew().catch((err: unknown) => {
      log.warn({ err }, 'the heartbeat of this instance did not reach the ledger');
      return null;
    });
    // Checked again: the process may have been paused after the answer.
    const fencingToken = lease.isHeld() ? (standing?.fencingToken ?? term.token()) : null;
    if (term.token() !== null && fencingToken !== term.token()) {
      log.warn({ fencingToken: term.token() }, 'this instance has stepped down');
      term.end(leading);
    }
    if (fencingToken === null || standing === null) return;
    if (term.token() === null) await term.begin(leading, fencingToken);
    if (standing.dead.length > 0) takeOver.begin(leading, standing.dead);
    const report = leading.report();
    if (report !== null) await inAnswerTime(store.report(fencingToken, report), clock);
  }

  async function run(leading: Leading): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, ended.signal).catch(() => {});
      if (ended.signal.aborted) return;
      await step(leading).catch((err: unknown) => log.warn({ err }, 'a term as leader failed'));
    }
  }

  return {
    leads: () => term.token() !== null && lease.isHeld(),
    living: () => lease.standing()?.living ?? [],
    reported: () => (lease.isHeard() ? (lease.standing()?.reported ?? null) : null),
    start: async (leading) => {
      await step(leading);
      for (let sent = 1; lease.standing() === null; sent++) {
        if (sent === FIRST_HEARTBEATS) throw new Error('the ledger cannot be reached');
        await clock.sleep(HEARTBEAT_MS, ended.signal);
        await step(leading);
      }
      loop = run(leading).finally(async () => {
        if (term.token() !== null) term.end(leading);
        await takeOver.idle();
      });
    },
    stop: async () => {
      ended.abort();
      await loop;
      await inAnswerTime(store.leave(bootId), clock).catch(() => {});
    },
  };
}

function createLease(store: InstancesStore, bootId: string, clock: Clock) {
  let standing: Standing | null = null;
  let heardMs = Number.NEGATIVE_INFINITY;
  let heldUntilMs = Number.NEGATIVE_INFINITY;

  return {
    /** Rejects, and changes nothing, when the ledger does not answer in time. */
    renew: async (): Promise<Standing> => {
      const askedMs = clock.nowMs();
      const renewed = await inAnswerTime(store.heartbeat(bootId, LEASE_MS, LIVING_MS), clock);
      standing = renewed;
      heardMs = askedMs;
      heldUntilMs = renewed.fencingToken === null ? Number.NEGATIVE_INFINITY : askedMs + LEASE_MS - MARGIN_MS;
      return renewed;
    },
    isHeld: (): boolean => clock.nowMs() < heldUntilMs,
    isHeard: (): boolean => clock.nowMs() - heardMs <= REPORT_AGE_MS,
    standing: (): Standing | null => standing,
  };
}

const inAnswerTime = <T>(asked: Promise<T>, clock: Clock): Promise<T> =>
  inTime(asked, ANSWER_MS, clock, () => new Error(`the ledger did not answer in ${ANSWER_MS} ms`));

/** One term of leading. `token` is the fencing token from the start of `lead` to `stepDown`. */
function createTerm(log: Log) {
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
        // Parts that have begun are ended, and the next step begins again.
        end(leading);
        throw error;
      }
    },
    end,
  };
}

function createTakeOver(store: InstancesStore, log: Log) {
  let running: Promise<void> | null = null;

  async function run(leading: Leading, dead: readonly string[]): Promise<void> {
    try {
      await leading.takeOver(dead);
      for (const one of dead) await store.forget(one);
    } catch (err) {
      log.warn({ err, instances: dead.length }, 'the open payments of dead instances were not taken over');
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
