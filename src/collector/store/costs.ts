import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { hourOf } from './facts.ts';

// What transactions cost: counts of equal values an hour, to three significant digits, at most some hundred rows.

export type OperationKind = 'deploy' | 'nativeTransfer' | 'tokenTransfer' | 'contractCall';

/** Time and base fee are the block's, both prices in wei a gas. */
export interface OperationCost {
  readonly kind: OperationKind;
  readonly at: number;
  readonly gasUsed: number;
  readonly effectiveGasPrice: bigint;
  readonly baseFee: bigint;
}

export interface OperationCosts {
  /** In the caller's transaction, or its own. A block counted twice shifts no percentile. */
  record(costs: readonly OperationCost[]): void;
  /** Deletes hours that began before. */
  prune(before: number): void;
}

const ADD = `
  INSERT INTO operation_costs (at, kind, measure, value, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (at, kind, measure, value) DO UPDATE SET count = count + excluded.count`;

const ADD_TIP = `
  INSERT INTO tips (at, wei, count) VALUES (?, ?, ?)
  ON CONFLICT (at, wei) DO UPDATE SET count = count + excluded.count`;
/** Far above any tip, and below SQLite's largest integer. */
const MAX_TIP = 10n ** 18n;
/** Wei in 10^-9 of the native currency. */
const WEI_PER_E9 = 1_000_000_000n;

/** Adds up equal values first: thousands of transactions are some dozen statements. */
export function createOperationCosts(db: Sqlite): OperationCosts {
  const add = db.prepare(ADD);
  const addTip = db.prepare(ADD_TIP);
  const prune = ['operation_costs', 'tips'].map((table) => db.prepare(`DELETE FROM ${table} WHERE at < ?`));
  const record = db.transaction((costs: readonly OperationCost[]) => {
    const counts = new Map<string, number>();
    const tips = new Map<string, number>();
    for (const { kind, at, gasUsed, effectiveGasPrice, baseFee } of costs) {
      const hour = hourOf(at);
      const feeE9 = Number((BigInt(gasUsed) * effectiveGasPrice) / WEI_PER_E9);
      for (const key of [`${hour} ${kind} gas ${rounded(gasUsed)}`, `${hour} ${kind} fee ${rounded(feeE9)}`]) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      const tip = `${hour} ${rounded(Number(tipOf(effectiveGasPrice, baseFee)))}`;
      tips.set(tip, (tips.get(tip) ?? 0) + 1);
    }
    for (const [key, count] of counts) {
      const [hour, kind, measure, value] = key.split(' ');
      add.run(Number(hour), kind, measure, Number(value), count);
    }
    for (const [key, count] of tips) addTip.run(...key.split(' ').map(BigInt), count);
  });
  return {
    record: (costs) => void record(costs),
    prune: (before) => {
      for (const statement of prune) statement.run(before);
    },
  };
}

function tipOf(price: bigint, baseFee: bigint): bigint {
  const tip = price > baseFee ? price - baseFee : 0n;
  return tip < MAX_TIP ? tip : MAX_TIP;
}

/** At most half a percent off. */
function rounded(value: number): number {
  const step = 10 ** Math.max(String(value).length - 3, 0);
  return Math.round(value / step) * step;
}

/** Of hours from `from` on, in Unix seconds. */
export interface CostReads {
  costs(kind: OperationKind, measure: 'gas' | 'fee', from: number): Histogram;
  /** Priority fees, in wei a gas. */
  tips(from: number): Histogram;
}

export function createCostReads(db: Sqlite): CostReads {
  const select = db
    .prepare('SELECT value, sum(count) FROM operation_costs WHERE at >= ? AND kind = ? AND measure = ? GROUP BY value')
    .raw()
    .safeIntegers();
  const selectTips = db.prepare('SELECT wei, sum(count) FROM tips WHERE at >= ? GROUP BY wei').raw().safeIntegers();
  return {
    tips: (from) => histogramOf(selectTips.all(hourOf(from))),
    costs: (kind, measure, from) => histogramOf(select.all(hourOf(from), kind, measure)),
  };
}

export function histogramOf(rows: unknown[]): Histogram {
  return new Map((rows as [bigint, bigint][]).map(([value, count]) => [value, Number(count)]));
}
