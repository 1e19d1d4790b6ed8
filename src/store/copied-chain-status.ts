import { type Coverage, missingFrom, sizeOf } from '../lib/coverage.ts';
import { type CoverageKind, createChainFacts } from './chain-facts.ts';
import { createChainLookups } from './chain-lookups.ts';
import { type CollectorStatus, NO_COLLECTOR } from './collector-status.ts';
import type { Sqlite } from './database.ts';

/** Blocks over which the time between blocks is reported: ten minutes on Arc. */
const BLOCK_TIME_OVER = 1200;
const HOUR_SECONDS = 3600;

/**
 * Where the collector stood when its database was copied; `version` tells copies apart. The head counts as heard when the collector last
 * saw it move, so every lag that is told grows from then on, until a newer copy comes.
 */
export function readCopiedStatus(db: Sqlite, version: number, backfillHours: number): CollectorStatus {
  const facts = createChainFacts(db);
  const lookups = createChainLookups(db);
  const head = facts.head();
  const full = facts.coverage('full');
  const top = full.at(-1)?.to;
  const at = top === undefined ? null : lookups.atOf(top);
  const blockTimeSeconds = lookups.blockTime(BLOCK_TIME_OVER);
  const blocks = Math.ceil((backfillHours * HOUR_SECONDS) / (blockTimeSeconds ?? 1));
  const share = (kind: CoverageKind) => shareOf(facts.coverage(kind), top ?? 0, blocks);
  return {
    ...NO_COLLECTOR.status(),
    head: head && { number: head.number, hash: head.hash, at: head.at },
    headAdvancedMs: head?.advancedMs ?? null,
    headCheckedMs: head?.advancedMs ?? null,
    collected: top === undefined || at === null ? null : { number: top, at },
    firstCollected: facts.first(),
    blocksCollected: sizeOf(full) + facts.rolledUp(),
    blockTimeSeconds,
    backfill: {
      share: share('full'),
      blocksPerSecond: 0,
      secondsLeft: share('full') === 1 ? 0 : null,
      feesShare: share('fees'),
      logsShare: share('logs'),
    },
    version,
  };
}

/** Chain id of what was copied; null before its collector had asked. */
export function readCopiedChainId(db: Sqlite): number | null {
  const facts = createChainFacts(db);
  return (JSON.parse(facts.get('identity') ?? 'null') as { chainId: number } | null)?.chainId ?? null;
}

/** Of so many blocks up to `top`; down to a ten-thousandth, never up: 1 means complete. */
function shareOf(coverage: Coverage, top: number, blocks: number): number {
  const window = { from: Math.max(1, top - blocks + 1), to: top };
  const size = window.to - window.from + 1;
  return size <= 0 ? 0 : Math.floor((1 - sizeOf(missingFrom(coverage, window)) / size) * 10_000) / 10_000;
}
