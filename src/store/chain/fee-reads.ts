import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../sqlite/database.ts';
import { createHourMemo, HOUR } from './hour-memo.ts';
import { keptUntilWritten } from './kept-until-written.ts';

/** The newest block whose fee is known. */
export interface LatestFee {
  readonly number: number;
  readonly at: number;
  /** Wei. */
  readonly baseFee: bigint;
  /** The fee that the block itself announced; null when it announced none, or when only fee history is known. */
  readonly nextBaseFee: bigint | null;
  /** gasUsed / gasLimit, 0 to 1. */
  readonly utilisation: number;
  /** Of the newest block that was read whole. */
  readonly gasLimit: bigint | null;
}

/** The mean utilisation of a minute's blocks. */
export interface MinuteUse {
  /** Unix seconds of its beginning. */
  readonly at: number;
  readonly blocks: number;
  readonly utilisation: number;
}

/** Base fees and the use of gas, block by block. Times are Unix seconds, `from` included, `to` not. */
export interface FeeReads {
  latestFee(): LatestFee | null;
  /** Utilisation of the newest blocks, oldest first. */
  recentUse(blocks: number): number[];
  baseFees(from: number, to: number): Histogram;
  /** The ends of the rows within a span of time; null without a row. */
  feeEdges(from: number, to: number): FeeEdges | null;
  /** Transactions of each of the newest blocks that were read whole, newest first. */
  recentTransactions(blocks: number): number[];
  /** Oldest first; minutes without a block are left out. */
  minutes(from: number, to: number): MinuteUse[];
}

/** The first and the last row of a span of time. */
export interface FeeEdges {
  readonly first: number;
  readonly last: number;
  /** Unix seconds of the first row. */
  readonly firstAt: number;
  /** Whether the rows begin where the span does: the block before the first is stored too, or the first is the chain's. */
  readonly reachesBack: boolean;
}

interface Part {
  readonly fees: Histogram;
  readonly minutes: readonly MinuteUse[];
}

const LATEST = `SELECT number, at, base_fee AS baseFee, next_base_fee AS nextBaseFee, utilisation,
    (SELECT gas_limit FROM blocks WHERE exact = 1 ORDER BY number DESC LIMIT 1) AS gasLimit
  FROM blocks ORDER BY number DESC LIMIT 1`;
const FEES = 'SELECT base_fee, count(*) FROM blocks WHERE at >= ? AND at < ? GROUP BY base_fee';
const EDGES = `SELECT min(number) AS first, max(number) AS last, min(at) AS firstAt FROM blocks WHERE at >= ? AND at < ?`;
const COUNTS = 'SELECT transactions FROM blocks WHERE transactions IS NOT NULL ORDER BY number DESC LIMIT ?';
const MINUTES = `SELECT at / 60 * 60 AS at, count(*) AS blocks, avg(utilisation) AS utilisation
  FROM blocks WHERE at >= ? AND at < ? GROUP BY at / 60 ORDER BY 1`;

export function createFeeReads(db: Sqlite, version: () => number): FeeReads {
  const latest = db.prepare(LATEST).safeIntegers();
  const recent = db.prepare('SELECT utilisation FROM blocks ORDER BY number DESC LIMIT ?').pluck();
  const fees = db.prepare(FEES).raw().safeIntegers();
  const minutes = db.prepare(MINUTES);
  const edges = db.prepare(EDGES);
  const isStored = db.prepare('SELECT 1 FROM blocks WHERE number = ?').pluck();
  const counts = db.prepare(COUNTS).pluck();

  const read = (from: number, to: number): Part => {
    const counts = (fees.all(from, to) as [bigint, bigint][]).map(([fee, count]) => [fee, Number(count)] as const);
    return { fees: new Map(counts), minutes: minutes.all(from, to) as MinuteUse[] };
  };
  const hourOf = createHourMemo(db, (hour) => read(hour, hour + HOUR));

  /** Takes whole hours from the memo, and the two partial hours at the ends from their rows. */
  const partsOf = (from: number, to: number): Part[] =>
    hoursIn(from, to).map(({ hour, ...part }) =>
      part.from === hour && part.to === hour + HOUR ? hourOf(hour) : read(part.from, part.to),
    );

  return {
    latestFee: keptUntilWritten(version, () => {
      const row = latest.get() as (Omit<LatestFee, 'number' | 'at'> & { number: bigint; at: bigint }) | undefined;
      return row === undefined ? null : { ...row, number: Number(row.number), at: Number(row.at) };
    }),
    recentUse: (blocks) => (recent.all(blocks) as number[]).reverse(),
    baseFees: (from, to) => merge(partsOf(from, to).map((part) => part.fees)),
    minutes: (from, to) => partsOf(from, to).flatMap((part) => part.minutes),
    feeEdges(from, to) {
      const row = edges.get(from, to) as Record<'first' | 'last' | 'firstAt', number | null>;
      if (row.first === null || row.last === null || row.firstAt === null) return null;
      const reachesBack = row.first <= 1 || isStored.get(row.first - 1) !== undefined;
      return { first: row.first, last: row.last, firstAt: row.firstAt, reachesBack };
    },
    recentTransactions: (blocks) => counts.all(blocks) as number[],
  };
}

/** The clock hours that a span touches, each with its part of the span. */
function hoursIn(from: number, to: number): { hour: number; from: number; to: number }[] {
  const first = Math.floor(from / HOUR) * HOUR;
  return Array.from({ length: Math.max(Math.ceil((to - first) / HOUR), 0) }, (_, at) => {
    const hour = first + at * HOUR;
    return { hour, from: Math.max(from, hour), to: Math.min(to, hour + HOUR) };
  });
}

function merge(histograms: readonly Histogram[]): Histogram {
  const all = new Map<bigint, number>();
  for (const histogram of histograms)
    for (const [value, count] of histogram) all.set(value, (all.get(value) ?? 0) + count);
  return all;
}
