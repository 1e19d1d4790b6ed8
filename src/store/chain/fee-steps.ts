import type { Sqlite } from '../sqlite/database.ts';

/** The base fees of a short span; `at` is its first second. */
export interface FeeStep {
  readonly at: number;
  /** Wei. */
  readonly minBaseFee: bigint;
  readonly avgBaseFee: bigint;
  readonly maxBaseFee: bigint;
}

/** Reader of base fees for a line over time. */
export interface FeeStepReads {
  /** Fees from `from` on (Unix seconds), oldest first, in spans of `stepSeconds`. Spans without a block are left out. */
  feeSteps(from: number, stepSeconds: number): FeeStep[];
}

const STEPS = `SELECT at / @step * @step AS at, count(*) AS blocks, min(base_fee) AS least, sum(base_fee) AS total, max(base_fee) AS most
  FROM blocks WHERE at >= @from GROUP BY 1 ORDER BY 1`;

type Row = Record<'at' | 'blocks' | 'least' | 'total' | 'most', bigint>;

export function createFeeSteps(db: Sqlite): FeeStepReads {
  const select = db.prepare<{ from: number; step: bigint }, Row>(STEPS).safeIntegers();
  return {
    feeSteps: (from, step) =>
      // Bound as an integer; otherwise the database would divide fractions.
      select
        .all({ from: Math.floor(from / step) * step, step: BigInt(step) })
        .map(({ at, blocks, least, total, most }) => ({
          at: Number(at),
          minBaseFee: least,
          avgBaseFee: (total + blocks / 2n) / blocks,
          maxBaseFee: most,
        })),
  };
}
