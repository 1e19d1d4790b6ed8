import { type Coverage, sizeOf } from '../../lib/coverage.ts';
import type { CollectorStatus } from './collector-status.ts';
import type { ChainFacts } from './facts.ts';
import type { ChainLookups } from './lookups.ts';

/** Blocks over which the time between blocks is reported: ten minutes on Arc. */
const BLOCK_TIME_OVER = 1200;

/** The collector's progress as its chain database shows it; `full` is the coverage of whole blocks. */
export function readCollected(
  { facts, lookups }: { readonly facts: ChainFacts; readonly lookups: ChainLookups },
  full: Coverage,
): Pick<CollectorStatus, 'collected' | 'firstCollected' | 'blocksCollected' | 'blockTimeSeconds'> {
  const top = full.at(-1)?.to;
  const at = top === undefined ? null : lookups.atOf(top);
  return {
    collected: top === undefined || at === null ? null : { number: top, at },
    firstCollected: facts.first(),
    blocksCollected: sizeOf(full) + facts.rolledUp(),
    blockTimeSeconds: lookups.blockTime(BLOCK_TIME_OVER),
  };
}
