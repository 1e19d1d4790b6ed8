import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createHourMemo, HOUR } from './accounts.ts';
import { keptUntilWritten } from './facts.ts';

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
interface MinuteUse {
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
interface FeeEdges {
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

/** The base fees of a short span; `at` is its first second. */
interface FeeStep {
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

/** The totals of an hour; `at` is its first second. */
interface HourTotals {
  readonly at: number;
  /** Blocks whose base fee and utilisation are known. The fees below are of these blocks. */
  readonly blocks: number;
  /** Blocks whose transactions were counted. The counts below are of these blocks. */
  readonly counted: number;
  /** The hour is over and every block of it was counted. */
  readonly complete: boolean;
  /** Wei. */
  readonly minBaseFee: bigint;
  readonly avgBaseFee: bigint;
  readonly maxBaseFee: bigint;
  /** Mean over the blocks, 0 to 1. */
  readonly utilisation: number;
  readonly transactions: number;
  readonly deploys: number;
  /** Created contracts: `deploys` without failed ones. Rolled-up hours do not keep the failures, so all of their deploys count as created. */
  readonly created: number;
  /** Distinct accounts that created one. */
  readonly deployers: number;
  readonly nativeTransfers: number;
  readonly tokenTransfers: number;
  readonly contractCalls: number;
}

/** Hours of the chain, from raw rows and from rolled-up rows. */
export interface HourReads {
  /** The clock hours that touch `from` up to `to` (Unix seconds, exclusive), oldest first; hours without a stored block are left out. */
  hours(from: number, to: number): readonly HourTotals[];
}

const COLUMNS = `coalesce(sum(transactions), 0), coalesce(sum(deploys), 0),
         (SELECT count(DISTINCT deployer) FROM deploys WHERE block BETWEEN min(blocks.number) AND max(blocks.number)),
         coalesce(sum(native_transfers), 0), coalesce(sum(token_transfers), 0), coalesce(sum(contract_calls), 0),
         (SELECT count(*) FROM deploys WHERE block BETWEEN min(blocks.number) AND max(blocks.number))`;
const RAW = `SELECT count(*), count(transactions), min(base_fee), sum(base_fee), max(base_fee), sum(utilisation), ${COLUMNS}
  FROM blocks WHERE at >= ? AND at < ?`;
const ROLLED_UP = `SELECT blocks, counted_blocks, min_base_fee, avg_base_fee * blocks, max_base_fee, utilisation * blocks,
  transactions, deploys, deployers, native_transfers, token_transfers, contract_calls, deploys FROM hours WHERE at = ?`;

/** Integers as SQLite holds them; the sixth is a sum of ratios. */
type HourRow = [bigint, bigint, bigint, bigint, bigint, number, bigint, bigint, bigint, bigint, bigint, bigint, bigint];

/** The hours that were asked for are kept until `version` changes: the running hour has up to 7,200 rows, too many to sum up for each call. */
export function createHourReads(db: Sqlite, version: () => number): HourReads {
  const raw = db.prepare(RAW).raw().safeIntegers();
  const rolledUp = db.prepare(ROLLED_UP).raw().safeIntegers();
  const totals = createHourMemo(db, (hour, frame) => {
    const old = rolledUp.get(hour) as HourRow | undefined;
    const fresh = raw.get(hour, hour + HOUR) as HourRow;
    if (old === undefined) return fresh[0] > 0n ? toTotals(hour, [fresh], frame.complete) : null;
    const parts = fresh[0] > 0n ? [old, fresh] : [old];
    return toTotals(hour, parts, frame.above !== null && parts.every((part) => part[0] === part[1]));
  });
  // Empty after each write.
  const keptWindows = keptUntilWritten(version, () => new Map<string, readonly HourTotals[]>());
  return {
    hours(from, to) {
      const first = Math.floor(from / HOUR) * HOUR;
      const count = Math.max(Math.ceil((to - first) / HOUR), 0);
      const window = `${first} ${count}`;
      const kept = keptWindows();
      const known = kept.get(window);
      if (known) return known;
      const hours = Array.from({ length: count }, (_, at) => totals(first + at * HOUR)).filter((hour) => hour !== null);
      kept.set(window, hours);
      return hours;
    },
  };
}

/** Sums up the parts of an hour, at least one. At the edge of the retention there are two: a rolled-up row and some blocks. */
function toTotals(at: number, parts: readonly HourRow[], complete: boolean): HourTotals {
  const sum = (column: 0 | 1 | 3 | 6 | 7 | 9 | 10 | 11 | 12) => parts.reduce((total, part) => total + part[column], 0n);
  const sorted = (column: 2 | 4 | 8) => parts.map((part) => part[column]).sort((a, b) => (a < b ? -1 : 1));
  const [blocks, counted] = [sum(0), sum(1)];
  return {
    at,
    blocks: Number(blocks),
    counted: Number(counted),
    complete,
    minBaseFee: sorted(2)[0] ?? 0n,
    avgBaseFee: (sum(3) + blocks / 2n) / blocks,
    maxBaseFee: sorted(4).at(-1) ?? 0n,
    utilisation: parts.reduce((total, part) => total + part[5], 0) / Number(blocks),
    transactions: Number(sum(6)),
    deploys: Number(sum(7)),
    created: Number(sum(12)),
    // The parts may share accounts, and the rolled-up row has only a count. So the larger count is used.
    deployers: Number(sorted(8).at(-1) ?? 0n),
    nativeTransfers: Number(sum(9)),
    tokenTransfers: Number(sum(10)),
    contractCalls: Number(sum(11)),
  };
}
