import { createHeap, type Heap } from './heap.ts';
import { type Owner, runAs } from './owner.ts';
import type { Random } from './random.ts';
import { real } from './real.ts';
import type { Trace } from './trace.ts';

interface Event {
  readonly due: number;
  readonly order: number;
  readonly label: string;
  readonly run: () => void;
  cancelled: boolean;
}

/** What was put off; `cancel` is too late once it has run. */
export interface Scheduled {
  cancel(): void;
}

/** Virtual time, and the one order in which everything in it happens. */
export interface Scheduler {
  /** Unix milliseconds, whole. */
  nowMs(): number;
  /** Has something happen as this owner's doing, so many milliseconds from now. */
  after(ms: number, owner: Owner, label: string, run: () => void): Scheduled;
  /** Lets everything happen up to this time; time is there when it resolves. */
  runUntil(ms: number): Promise<void>;
  /** Lets things happen while `isWaiting`, at most until this time. Returns whether the wait ended. */
  runWhile(isWaiting: () => boolean, untilMs: number): Promise<boolean>;
  /** Leaps: what is due between is late, as after a machine was suspended. */
  leap(ms: number): void;
  /** Does something after so many more events of this owner, between two of them. */
  afterEventsOf(owner: Owner, events: number, what: () => void): void;
  /** Nothing is done after so many events any more. */
  callOff(): void;
  /** How many events have happened. */
  count(): number;
  forget(owner: Owner): void;
}

interface OwnerQueue {
  readonly owner: Owner;
  readonly events: Heap<Event>;
}

/**
 * One event at a time. Each owner's events keep their order; whose comes first among those that are due at the same time is chosen by the seed,
 * which is where races come from. Promises and ticks that an event makes ready have run before the next event.
 */
export function createScheduler(startMs: number, random: Random, trace: Trace): Scheduler {
  const queues = new Map<Owner, OwnerQueue>();
  let now = startMs;
  let order = 0;
  let count = 0;
  let lastOwner: Owner | null = null;
  const countdowns = new Map<Owner, { left: number; what: () => void }[]>();

  function queueOf(owner: Owner): OwnerQueue {
    const known = queues.get(owner);
    if (known) return known;
    const queue = { owner, events: createHeap<Event>() };
    queues.set(owner, queue);
    return queue;
  }

  function firstOf({ owner, events }: OwnerQueue): Event | undefined {
    if (owner.state === 'asleep') return undefined;
    while (events.peek()?.cancelled) events.pop();
    return events.peek();
  }

  /** The queue whose event comes next, at the latest at `untilMs`. */
  function nextQueue(untilMs: number): OwnerQueue | null {
    let earliest = Number.POSITIVE_INFINITY;
    let candidates: OwnerQueue[] = [];
    for (const queue of queues.values()) {
      const first = firstOf(queue);
      if (!first) continue;
      // What is late is as due as what is due now.
      const due = Math.max(first.due, now);
      if (due > earliest) continue;
      if (due < earliest) candidates = [];
      earliest = due;
      candidates.push(queue);
    }
    if (earliest > untilMs) return null;
    return candidates.length > 1 ? random.pick(candidates) : (candidates[0] ?? null);
  }

  function step(untilMs: number): boolean {
    const queue = nextQueue(untilMs);
    const event = queue?.events.pop();
    if (!queue || !event) return false;
    now = Math.max(now, event.due);
    count += 1;
    trace.note(now, queue.owner.name, event.label);
    lastOwner = queue.owner;
    runAs(queue.owner, event.run);
    return true;
  }

  /** After an event and everything that it made ready. */
  function countDown(owner: Owner): void {
    const waiting = countdowns.get(owner);
    if (!waiting) return;
    const due = waiting.filter((one) => one.left-- <= 0);
    countdowns.set(
      owner,
      waiting.filter((one) => !due.includes(one)),
    );
    for (const { what } of due) what();
  }

  function pump(isWaiting: () => boolean, untilMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        try {
          if (lastOwner) countDown(lastOwner);
          lastOwner = null;
          if (!isWaiting()) return resolve(true);
          if (step(untilMs)) return void real.setImmediate(turn);
        } catch (error) {
          return reject(error);
        }
        now = Math.max(now, untilMs);
        resolve(!isWaiting());
      };
      // Node's own turn: between two events everything that is ready (ticks, microtasks) has run.
      real.setImmediate(turn);
    });
  }

  return {
    nowMs: () => now,
    after(ms, owner, label, run) {
      const event: Event = { due: now + Math.max(0, Math.ceil(ms)), order: order++, label, run, cancelled: false };
      if (owner.state !== 'dead') queueOf(owner).events.push(event);
      return {
        cancel: () => {
          event.cancelled = true;
        },
      };
    },
    runUntil: async (ms) => {
      await pump(() => true, ms);
    },
    runWhile: pump,
    leap: (ms) => {
      now += ms;
    },
    afterEventsOf: (owner, events, what) => {
      countdowns.set(owner, [...(countdowns.get(owner) ?? []), { left: events, what }]);
    },
    callOff: () => countdowns.clear(),
    count: () => count,
    forget: (owner) => {
      queues.delete(owner);
    },
  };
}
