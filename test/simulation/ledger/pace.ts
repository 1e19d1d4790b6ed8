import { currentOwner, type Owner, WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';

/** How statements reach the database and their answers come back. */
export interface Pace {
  /** Runs a statement at the database, and reports its end to the caller. `inOrder`: after all earlier statements of the same caller. */
  ask<T>(statement: () => Promise<T>, inOrder: boolean): Promise<T>;
  /** Something that the database tells somebody unasked. */
  tell(to: Owner, what: () => void): void;
  nowMs(): number;
}

/** What is wrong with the way to the database at present. */
export interface LedgerMood {
  /** `away` refuses at once; `silent` never answers; `lost` does what was asked and loses the answer; `slow` takes its time. */
  how: 'well' | 'away' | 'silent' | 'lost' | 'slow';
  percent: number;
}

interface PaceOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly mood: LedgerMood;
  /** Milliseconds after which a client gives up a statement. */
  readonly timeoutMs: number;
  /** The error that a client gets then. */
  failure(): Error;
}

/** The way over the simulated network: statements of a process that is killed arrive or not, answers to one asleep wait for it. */
export function createPace({ scheduler, random, mood, timeoutMs, failure }: PaceOptions): Pace {
  const lastMs = new Map<Owner, number>();

  function arrivalMs(from: Owner, inOrder: boolean): number {
    const drawn = random.between(0, mood.how === 'slow' ? 900 : 2);
    if (!inOrder) return drawn;
    const at = Math.max(lastMs.get(from) ?? 0, scheduler.nowMs() + drawn);
    lastMs.set(from, at);
    return at - scheduler.nowMs();
  }

  return {
    nowMs: scheduler.nowMs,
    ask: <T>(statement: () => Promise<T>, inOrder: boolean) =>
      new Promise<T>((resolve, reject) => {
        const from = currentOwner();
        const fate = mood.how !== 'well' && random.chance(mood.percent / 100) ? mood.how : 'well';
        const back = (ms: number, end: () => void) => void scheduler.after(ms, from, 'ledger answers', end);
        if (fate === 'away') return back(1, () => reject(failure()));
        if (fate === 'silent') return back(timeoutMs, () => reject(failure()));
        scheduler.after(arrivalMs(from, inOrder), WORLD, 'ledger asked', () => {
          if (from.state === 'dead' && random.chance(0.5)) return;
          const pause = () => random.between(0, 2);
          statement().then(
            (result) =>
              fate === 'lost' ? back(timeoutMs, () => reject(failure())) : back(pause(), () => resolve(result)),
            (error: unknown) => back(pause(), () => reject(error)),
          );
        });
      }),
    tell: (to, what) => {
      if (mood.how === 'away' || mood.how === 'silent') return;
      scheduler.after(random.between(0, 3), to, 'ledger tells', what);
    },
  };
}
