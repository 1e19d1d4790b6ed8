import type { Clock } from './clock.ts';

/** The newest success and failure of one named thing, in Unix milliseconds. */
export interface Outcome {
  readonly name: string;
  /** Null: none since this process started. */
  readonly okAtMs: number | null;
  readonly failedAtMs: number | null;
  readonly reason: string | null;
}

export interface Outcomes {
  /** Adds a name. */
  expect(name: string): void;
  succeeded(name: string): void;
  failed(name: string, reason: string): void;
  of(name: string): Outcome | null;
  /** In the order of the names' coming. */
  all(): readonly Outcome[];
}

/** This process's own memory: another one has seen other calls. */
export function createOutcomes(clock: Clock): Outcomes {
  const known = new Map<string, Outcome>();
  const before = (name: string): Outcome => known.get(name) ?? { name, okAtMs: null, failedAtMs: null, reason: null };
  return {
    expect: (name) => void known.set(name, before(name)),
    succeeded: (name) => void known.set(name, { ...before(name), okAtMs: clock.nowMs() }),
    failed: (name, reason) => void known.set(name, { ...before(name), failedAtMs: clock.nowMs(), reason }),
    of: (name) => known.get(name) ?? null,
    all: () => [...known.values()],
  };
}
