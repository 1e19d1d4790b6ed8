import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../sqlite/database.ts';

/** What a transaction does, as its own fields show it. */
export type OperationKind = 'deploy' | 'nativeTransfer' | 'tokenTransfer' | 'contractCall';

/** What one mined transaction cost. */
export interface OperationCost {
  readonly kind: OperationKind;
  /** Unix seconds of its block. */
  readonly at: number;
  readonly gasUsed: number;
  /** Per gas, in wei. */
  readonly effectiveGasPrice: bigint;
}

/** Writer of `operation_costs`. */
export interface OperationCosts {
  /** Counts them inside the caller's transaction, or in its own. Callers may count a block twice, because that shifts no percentile. */
  record(costs: readonly OperationCost[]): void;
  /** Deletes hours that began before `before` (Unix seconds). */
  prune(before: number): void;
}

const HOUR = 3600;
/** Wei in 10^-9 of the native currency. */
const WEI_PER_E9 = 1_000_000_000n;

const ADD = `
  INSERT INTO operation_costs (at, kind, measure, value, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (at, kind, measure, value) DO UPDATE SET count = count + excluded.count`;

/** Adds up equal values first, so that thousands of transactions of a span are some dozen statements. */
export function createOperationCosts(db: Sqlite): OperationCosts {
  const add = db.prepare(ADD);
  const prune = db.prepare('DELETE FROM operation_costs WHERE at < ?');
  const record = db.transaction((costs: readonly OperationCost[]) => {
    const counts = new Map<string, number>();
    for (const { kind, at, gasUsed, effectiveGasPrice } of costs) {
      const hour = Math.floor(at / HOUR) * HOUR;
      const feeE9 = Number((BigInt(gasUsed) * effectiveGasPrice) / WEI_PER_E9);
      for (const key of [`${hour} ${kind} gas ${rounded(gasUsed)}`, `${hour} ${kind} fee ${rounded(feeE9)}`]) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
    for (const [key, count] of counts) {
      const [hour, kind, measure, value] = key.split(' ');
      add.run(Number(hour), kind, measure, Number(value), count);
    }
  });
  return {
    record: (costs) => void record(costs),
    prune: (before) => void prune.run(before),
  };
}

/** Three significant digits: at most half a percent off. */
function rounded(value: number): number {
  const step = 10 ** Math.max(String(value).length - 3, 0);
  return Math.round(value / step) * step;
}

/** Reader of `operation_costs`. */
export interface CostReads {
  /** Values of a kind of operation seen in hours from `from` on (Unix seconds). */
  costs(kind: OperationKind, measure: 'gas' | 'fee', from: number): Histogram;
}

export function createCostReads(db: Sqlite): CostReads {
  const select = db
    .prepare('SELECT value, sum(count) FROM operation_costs WHERE at >= ? AND kind = ? AND measure = ? GROUP BY value')
    .raw()
    .safeIntegers();
  return {
    costs: (kind, measure, from) => {
      const rows = select.all(Math.floor(from / HOUR) * HOUR, kind, measure) as [bigint, bigint][];
      return new Map(rows.map(([value, count]) => [value, Number(count)]));
    },
  };
}
