import type { Clock } from '../lib/clock.ts';
import { inTime } from '../lib/in-time.ts';
import { type InstancesStore, LIVING_MS, type Standing } from '../store/ports/instances.ts';

/** How often an instance says that it lives. */
const BEAT_MS = 1000;
/** A leader that has not said so for this long may be replaced. */
const LEASE_MS = 6000;
/** It stops to lead by itself before that, so that two lead at most where clocks run at different speeds or a process was asleep. */
const MARGIN_MS = 1500;
/** Without a word from the ledger for this long nobody knows what the leader would say. */
const SILENT_MS = 5000;
/** A beat that takes longer is none: the lease must not run out behind it, nor a leader go on because it waits. */
const PATIENCE_MS = 2000;

/** What an instance does beside serving while it leads. */
export interface Leading {
  /** Begins; `fence` is the lease's number, which the ledger asks for before anything is sent. A rejection is tried again, after `follow`. */
  lead(fence: number): Promise<void>;
  /** Ends, whatever is under way; what is left open is the next leader's. */
  follow(): Promise<void>;
  /** Takes over what these instances left, beside the beats, however much it is. A rejection is tried again at the next beat. */
  takeOver(dead: readonly string[]): Promise<void>;
  /** What the others must know, as text; null while there is nothing to tell. */
  word(): string | null;
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
  /** Resolves after the first beat, rejects when it fails. */
  start(leading: Leading): Promise<void>;
  /** Ends leading and gives the lease to whoever comes. */
  stop(): Promise<void>;
}

/**
 * Keeps this instance among the living, and lets one of all lead.
 * 1. A beat a second says that it lives and takes the lease where it may. The lease counts from before the beat was asked for.
 * 2. Whoever gains it begins to lead with the lease's number; whoever cannot renew it in time ends by itself.
 * 3. The leader takes over what the dead left, and strikes them off; the beats go on meanwhile.
 * A leader that was asleep may believe for a moment that it still leads: the number is what the ledger then refuses.
 */
export function createMembership({ store, bootId, clock, log }: MembershipOptions): Membership {
  const ended = new AbortController();
  let standing: Standing | null = null;
  let heardMs = Number.NEGATIVE_INFINITY;
  let heldUntilMs = Number.NEGATIVE_INFINITY;
  /** The number under which this one leads, from the beginning of `lead` to the end of `follow`. */
  let leadingAs: number | null = null;
  let loop: Promise<void> | null = null;

  let buried: Promise<void> | null = null;

  const leads = () => leadingAs !== null && clock.nowMs() < heldUntilMs;

  const patiently = <T>(asked: Promise<T>): Promise<T> =>
    inTime(asked, PATIENCE_MS, clock, () => new Error(`the ledger did not answer in ${PATIENCE_MS} ms`));

  async function beat(): Promise<Standing> {
    const askedMs = clock.nowMs();
    const told = await patiently(store.beat(bootId, LEASE_MS, LIVING_MS));
    standing = told;
    heardMs = askedMs;
    heldUntilMs = told.fence === null ? Number.NEGATIVE_INFINITY : askedMs + LEASE_MS - MARGIN_MS;
    return told;
  }

  async function endLeading(leading: Leading): Promise<void> {
    leadingAs = null;
    await leading.follow();
  }

  async function beginLeading(leading: Leading, fence: number): Promise<void> {
    log.info({ fence }, 'this instance leads');
    leadingAs = fence;
    try {
      await leading.lead(fence);
    } catch (error) {
      // Half of it may have begun: it ends, so that the next turn begins anew.
      await endLeading(leading);
      throw error;
    }
  }

  async function bury(leading: Leading, dead: readonly string[]): Promise<void> {
    try {
      await leading.takeOver(dead);
      for (const one of dead) await store.forget(one);
    } catch (err) {
      log.warn({ err, instances: dead.length }, 'what dead instances left was not taken over');
    } finally {
      buried = null;
    }
  }

  async function turn(leading: Leading): Promise<void> {
    const told = await beat().catch((err: unknown) => {
      log.warn({ err }, 'the ledger does not hear that this instance lives');
      return null;
    });
    // Asked again: between the answer and this line the process may have slept.
    const isLate = clock.nowMs() >= heldUntilMs;
    const fence = isLate ? null : (told?.fence ?? leadingAs);
    if (leadingAs !== null && fence !== leadingAs) {
      log.warn({ fence: leadingAs }, 'this instance leads no more');
      await endLeading(leading);
    }
    if (fence === null || told === null) return;
    if (leadingAs === null) await beginLeading(leading, fence);
    if (told.dead.length > 0) buried ??= bury(leading, told.dead);
    const word = leading.word();
    if (word !== null) await patiently(store.say(fence, word));
  }

  async function run(leading: Leading): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.sleep(BEAT_MS, ended.signal).catch(() => {});
      if (ended.signal.aborted) return;
      await turn(leading).catch((err: unknown) => log.warn({ err }, 'a turn of leading failed'));
    }
  }

  return {
    leads,
    living: () => standing?.living ?? [],
    reported: () => (clock.nowMs() - heardMs > SILENT_MS ? null : (standing?.said ?? null)),
    start: async (leading) => {
      await turn(leading);
      if (standing === null) throw new Error('the ledger cannot be reached');
      loop = run(leading).finally(async () => {
        if (leadingAs !== null) await endLeading(leading);
        await buried;
      });
    },
    stop: async () => {
      ended.abort();
      await loop;
      await patiently(store.leave(bootId)).catch(() => {});
    },
  };
}
