import type { Fault } from './replay.ts';

/** For a source that answers, in milliseconds: so long that no busy machine reaches it. */
export const PATIENT_MS = 60_000;

/** How the sources of a test are started: each with this time-out, and on ports that suit the fault which the test will set. */
export interface SourceOptions {
  readonly timeoutMs?: number;
  readonly fault?: Fault | null;
}

/** The time-out of a source with this fault: `shortMs` for a source that is silent, which the test waits for, and patience for any other. */
export const timeoutFor = (fault: Fault | null, shortMs: number): number =>
  fault === 'time-out' || fault === 'slow-body' ? shortMs : PATIENT_MS;
