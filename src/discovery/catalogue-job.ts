import type { Clock } from '../lib/clock.ts';
import type { Catalogue } from './catalogue.ts';

interface CatalogueJobOptions {
  readonly catalogue: Catalogue;
  /** Whether this process reads the catalogue now. Otherwise it loads what another process stored. */
  reads(): boolean;
  /** Called when the copy has changed. Must not reject. */
  readonly onChange: () => Promise<void>;
  readonly clock: Clock;
  /** A random number from 0 to 1. */
  readonly random?: () => number;
}

const HOUR_MS = 3_600_000;
/** How often the job looks for a newer stored copy and checks whether a read is due. */
const TICK_MS = 30_000;
/** The first read of a fresh process waits this long, so that chain providers and buyers come first. */
const FIRST_MS = 5000;
/** A failed read is tried again after this time, then after twice as long, and so on up to an hour. */
const RETRY_MS = 300_000;
/** Reads vary by this share of the interval, so that they do not stay on the full hour, when most timers fire. */
const JITTER = 0.05;

/** Reads the catalogue about once an hour. It counts from the stored copy, so that restarts do not ask more often. */
export function createCatalogueJob({ catalogue, reads, onChange, clock, random = Math.random }: CatalogueJobOptions) {
  const ended = new AbortController();
  let running: Promise<void> | null = null;
  let failures = 0;

  const spread = (ms: number) => ms * (1 + JITTER * (2 * random() - 1));
  const waitAfter = (readWell: boolean): number => {
    failures = readWell ? 0 : failures + 1;
    return spread(readWell ? HOUR_MS : Math.min(RETRY_MS * 2 ** (failures - 1), HOUR_MS));
  };

  function firstDue(): number {
    const readAt = catalogue.readAtMs();
    return Math.max(clock.nowMs() + FIRST_MS, readAt === null ? 0 : readAt + spread(HOUR_MS));
  }

  async function loop(): Promise<void> {
    let due: number | null = null;
    while (!ended.signal.aborted) {
      const before = catalogue.version();
      if (!reads()) {
        due = null;
        await catalogue.load();
      } else {
        due ??= firstDue();
        if (clock.nowMs() >= due) due = clock.nowMs() + waitAfter(await catalogue.read(ended.signal));
      }
      if (catalogue.version() !== before) await onChange();
      const waitMs = due === null ? TICK_MS : Math.min(Math.max(due - clock.nowMs(), 0), TICK_MS);
      await clock.sleep(waitMs, ended.signal).catch(() => undefined);
    }
  }

  return {
    /** Returns at once. A second call changes nothing. */
    start(): void {
      running ??= loop();
    },
    /** Aborts the current read and returns when none runs any more. Safe to call at any time and more than once. */
    async stop(): Promise<void> {
      ended.abort(new Error('the catalogue is no longer read'));
      await running;
    },
  };
}
