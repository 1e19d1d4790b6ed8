import { shareOf } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { readCollected } from './collected-status.ts';
import { type CollectorStatus, NO_COLLECTOR } from './collector-status.ts';
import { type CoverageKind, createChainFacts } from './facts.ts';
import { createChainLookups } from './lookups.ts';

const HOUR_SECONDS = 3600;

/**
 * The collector's state when its database was copied; `version` differs between copies.
 * The head counts as checked when the collector last saw it move. So every reported lag grows from then on, until a newer copy replaces this one.
 */
export function readCopiedStatus(db: Sqlite, version: number, backfillHours: number): CollectorStatus {
  const facts = createChainFacts(db);
  const lookups = createChainLookups(db);
  const head = facts.head();
  const full = facts.coverage('full');
  const collected = readCollected({ facts, lookups }, full);
  const blocks = Math.ceil((backfillHours * HOUR_SECONDS) / (collected.blockTimeSeconds ?? 1));
  const to = full.at(-1)?.to ?? 0;
  const share = (kind: CoverageKind) => shareOf(facts.coverage(kind), { from: Math.max(1, to - blocks + 1), to }, 0);
  return {
    ...NO_COLLECTOR.status(),
    ...collected,
    head: head && { number: head.number, hash: head.hash, at: head.at },
    headAdvancedMs: head?.advancedMs ?? null,
    headCheckedMs: head?.advancedMs ?? null,
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

/** The chain id of the copied database; null when its collector had not read it yet. */
export function readCopiedChainId(db: Sqlite): number | null {
  const facts = createChainFacts(db);
  return (JSON.parse(facts.get('identity') ?? 'null') as { chainId: number } | null)?.chainId ?? null;
}
