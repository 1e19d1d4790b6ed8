import { percentileOf } from '../../lib/percentile.ts';
import { formatGwei } from '../../lib/units.ts';

/** A table for a chart: one row per moment, one column per line. Times in Unix seconds, oldest first. */
export interface Series {
  readonly labels: readonly string[];
  /** Decimal text; null where there is no value. */
  readonly rows: readonly { readonly at: number; readonly values: readonly (string | null)[] }[];
}

/** Base fees of a short time span, in wei. */
interface FeeStep {
  readonly at: number;
  readonly minBaseFee: bigint;
  readonly avgBaseFee: bigint;
  readonly maxBaseFee: bigint;
}

/** One result of an RPC endpoint; `null` latency when it did not answer. */
interface Probe {
  readonly atMs: number;
  readonly latencyMs: number | null;
}

/** The data of the charts, which the collector and the probe keep. */
export interface ChartSource {
  /** Base fees since `from` (Unix seconds), oldest first, in spans of `stepSeconds`. */
  feeSteps(from: number, stepSeconds: number): readonly FeeStep[];
  /** Probe results since `sinceMs` (Unix milliseconds), oldest first. */
  probes(endpoint: string, sinceMs: number): readonly Probe[];
}

/** The base fee of the last half hour, in sixty points. */
export const FEES = { seconds: 1800, step: 30 } as const;
/** The latency of the last quarter of an hour. Each point covers about three probes. */
export const LATENCY = { seconds: 900, step: 15 } as const;

/** Lowest, mean and highest base fee in gwei, to four decimals. */
export function feeSeries(source: ChartSource, now: number): Series {
  return {
    labels: ['Lowest', 'Mean', 'Highest'],
    rows: source.feeSteps(now - FEES.seconds, FEES.step).map(({ at, minBaseFee, avgBaseFee, maxBaseFee }) => ({
      at,
      values: [minBaseFee, avgBaseFee, maxBaseFee].map(gweiText),
    })),
  };
}

/** The median latency of each endpoint in milliseconds; null where it did not answer. */
export function latencySeries(source: ChartSource, endpoints: readonly string[], now: number): Series {
  const { seconds, step } = LATENCY;
  const byStep = new Map<number, number[][]>();
  endpoints.forEach((name, column) => {
    for (const { atMs, latencyMs } of source.probes(name, (now - seconds) * 1000)) {
      const at = Math.floor(atMs / 1000 / step) * step;
      const row = byStep.get(at) ?? endpoints.map((): number[] => []);
      byStep.set(at, row);
      if (latencyMs !== null) row[column]?.push(latencyMs);
    }
  });
  const rows = [...byStep].sort(([a], [b]) => a - b).map(([at, row]) => ({ at, values: row.map(medianText) }));
  return { labels: endpoints, rows };
}

/** 0.0001 gwei in wei. */
const ROUND_WEI = 100_000n;

function gweiText(wei: bigint): string {
  return formatGwei(((wei + ROUND_WEI / 2n) / ROUND_WEI) * ROUND_WEI);
}

function medianText(values: readonly number[]): string | null {
  const median = percentileOf(values, 50);
  return median === null ? null : String(Math.round(median * 10) / 10);
}
