import { missingFrom, shareOf, sizeOf } from '../lib/coverage.ts';
import type { CollectorStatus } from '../store/chain/collector-status.ts';
import type { CoverageKind } from '../store/chain/facts.ts';
import type { StoredCoverage } from '../store/chain/writes.ts';
import type { Backfill } from './backfill.ts';
import type { CollectorContext } from './context.ts';

/** The rate is measured over this time, so that one slow request does not change the remaining time much. */
const RATE_OVER_MS = 60_000;
/** How often the progress of the first fill is logged. */
const LOG_EVERY_MS = 5000;

/** The progress of the background loop, as numbers and as log lines. */
export interface Progress {
  /** `coverage` is what is stored now. */
  read(coverage: StoredCoverage): CollectorStatus['backfill'];
  /** Called after each step of the background loop. */
  note(): void;
}

interface Sample {
  readonly ms: number;
  readonly missing: number;
}

/** Measures how fast the number of missing blocks falls. */
export function createProgress(context: CollectorContext, backfill: Backfill): Progress {
  const { clock, log, writes, scanners } = context;
  let samples: Sample[] = [];
  let loggedMs = clock.nowMs();
  let isLogged = false;

  function missingBlocks({ full }: StoredCoverage): number {
    const window = backfill.window('full');
    return window === null ? Number.NaN : sizeOf(missingFrom(full, window));
  }

  function filled(kind: CoverageKind, coverage: StoredCoverage): number {
    const window = backfill.window(kind);
    return window === null ? 0 : shareOf(coverage[kind], window, 1);
  }

  function read(coverage: StoredCoverage): CollectorStatus['backfill'] {
    const missing = missingBlocks(coverage);
    const first = samples[0];
    const seconds = first ? (clock.nowMs() - first.ms) / 1000 : 0;
    const rate = first && seconds > 0 ? Math.max(first.missing - missing, 0) / seconds : 0;
    const secondsLeft = missing === 0 ? 0 : rate > 0 ? missing / rate : null;
    return {
      share: filled('full', coverage),
      blocksPerSecond: missing > 0 ? Math.round(rate * 10) / 10 : 0,
      secondsLeft: secondsLeft === null ? null : Math.ceil(secondsLeft),
      feesShare: filled('fees', coverage),
      logsShare: scanners.length === 0 ? 1 : filled('logs', coverage),
    };
  }

  return {
    read,
    note() {
      const nowMs = clock.nowMs();
      const coverage = writes.coverage();
      const missing = missingBlocks(coverage);
      if (Number.isNaN(missing)) return;
      samples = [...samples.filter(({ ms }) => nowMs - ms <= RATE_OVER_MS), { ms: nowMs, missing }].slice(-600);
      if (missing === 0) {
        if (isLogged) log.info({}, 'the window of past blocks is complete');
        isLogged = false;
      } else if (nowMs - loggedMs >= LOG_EVERY_MS) {
        loggedMs = nowMs;
        isLogged = true;
        log.info({ ...read(coverage) }, 'filling the window of past blocks');
      }
    },
  };
}
