import { type Coverage, missingFrom, type Span } from '../../lib/coverage.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import type { Histogram } from '../../lib/percentile.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { histogramOf } from './costs.ts';
import { createChainFacts, HOUR, hourOf, keptUntilWritten } from './facts.ts';

// Base fees, the use of gas and the totals of hours, from blocks and from rolled-up hours. Times are Unix seconds, fees
// wei, utilisation is gasUsed / gasLimit, 0 to 1; a span includes `from`, but not `to`.

export interface LatestFee {
  readonly number: number;
  readonly at: number;
  readonly baseFee: bigint;
  /** Null when the block announced none, or only fee history is known. */
  readonly nextBaseFee: bigint | null;
  readonly utilisation: number;
  /** Of the newest block that was read whole. */
  readonly gasLimit: bigint | null;
}

/** `at` is the minute's first second. */
interface MinuteUse {
  readonly at: number;
  readonly blocks: number;
  readonly utilisation: number;
}

export interface FeeReads {
  latestFee(): LatestFee | null;
  /** Of the newest blocks, oldest first. */
  recentUse(blocks: number): number[];
  baseFees(from: number, to: number): Histogram;
  feeEdges(from: number, to: number): FeeEdges | null;
  recentTransactions(blocks: number): number[];
  /** Oldest first; minutes without a block are left out. */
  minutes(from: number, to: number): MinuteUse[];
}

interface FeeEdges {
  readonly first: number;
  readonly last: number;
  readonly firstAt: number;
  /** The block before is stored too, or the first is the chain's. */
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
const EDGES =
  'SELECT min(number) AS first, max(number) AS last, min(at) AS firstAt FROM blocks WHERE at >= ? AND at < ?';
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

  const read = (from: number, to: number): Part => ({
    fees: histogramOf(fees.all(from, to)),
    minutes: minutes.all(from, to) as MinuteUse[],
  });
  const wholeHour = createHourMemo(db, (hour) => read(hour, hour + HOUR));

  const partsOf = (from: number, to: number): Part[] =>
    hoursIn(from, to).map(({ hour, ...part }) =>
      part.from === hour && part.to === hour + HOUR ? wholeHour(hour) : read(part.from, part.to),
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

function hoursIn(from: number, to: number): { hour: number; from: number; to: number }[] {
  const first = hourOf(from);
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

/** `at` is the step's first second. */
interface FeeStep {
  readonly at: number;
  readonly minBaseFee: bigint;
  readonly avgBaseFee: bigint;
  readonly maxBaseFee: bigint;
}

export interface FeeStepReads {
  /** From `from` on, oldest first. Steps without a block are left out. */
  feeSteps(from: number, stepSeconds: number): FeeStep[];
}

const STEPS = `SELECT at / @step * @step AS at, count(*) AS blocks, min(base_fee) AS least, sum(base_fee) AS total,
         max(base_fee) AS most
  FROM blocks WHERE at >= @from GROUP BY 1 ORDER BY 1`;

type StepRow = Record<'at' | 'blocks' | 'least' | 'total' | 'most', bigint>;

export function createFeeSteps(db: Sqlite): FeeStepReads {
  const select = db.prepare<{ from: number; step: bigint }, StepRow>(STEPS).safeIntegers();
  return {
    feeSteps: (from, step) =>
      // Bound as an integer: else the database would divide fractions.
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

/** `at` is the hour's first second. */
interface HourTotals {
  readonly at: number;
  /** Whose base fee and utilisation are known; the fees below are theirs. */
  readonly blocks: number;
  /** Whose transactions were counted; the counts below are theirs. */
  readonly counted: number;
  /** The hour is over and every block of it was counted. */
  readonly complete: boolean;
  readonly minBaseFee: bigint;
  readonly avgBaseFee: bigint;
  readonly maxBaseFee: bigint;
  readonly utilisation: number;
  readonly transactions: number;
  readonly deploys: number;
  /** `deploys` without failed ones, which rolled-up hours do not tell apart. */
  readonly created: number;
  /** Distinct accounts that created a contract. */
  readonly deployers: number;
  readonly nativeTransfers: number;
  readonly tokenTransfers: number;
  readonly contractCalls: number;
}

export interface HourReads {
  /** Touched by the span, oldest first, without hours that have no stored block. */
  hours(from: number, to: number): readonly HourTotals[];
}

const COLUMNS = `coalesce(sum(transactions), 0), coalesce(sum(deploys), 0),
         (SELECT count(DISTINCT deployer) FROM deploys WHERE block BETWEEN min(blocks.number) AND max(blocks.number)),
         coalesce(sum(native_transfers), 0), coalesce(sum(token_transfers), 0), coalesce(sum(contract_calls), 0),
         (SELECT count(*) FROM deploys WHERE block BETWEEN min(blocks.number) AND max(blocks.number))`;
const RAW = `SELECT count(*), count(transactions), min(base_fee), sum(base_fee), max(base_fee), sum(utilisation),
         ${COLUMNS}
  FROM blocks WHERE at >= ? AND at < ?`;
const ROLLED_UP = `SELECT blocks, counted_blocks, min_base_fee, avg_base_fee * blocks, max_base_fee,
  utilisation * blocks,
  transactions, deploys, deployers, native_transfers, token_transfers, contract_calls, deploys FROM hours WHERE at = ?`;

/** Integers as SQLite holds them; the sixth is a sum of ratios. */
type HourRow = [bigint, bigint, bigint, bigint, bigint, number, bigint, bigint, bigint, bigint, bigint, bigint, bigint];

/** Kept until `version` changes: the running hour has up to 7,200 rows, too many for each call. */
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
  const keptWindows = keptUntilWritten(version, () => new Map<string, readonly HourTotals[]>());
  return {
    hours(from, to) {
      const wanted = hoursIn(from, to).map(({ hour }) => hour);
      const window = `${wanted[0]} ${wanted.length}`;
      const kept = keptWindows();
      const hours = kept.get(window) ?? wanted.map(totals).filter((hour) => hour !== null);
      kept.set(window, hours);
      return hours;
    },
  };
}

/** At the edge of the retention an hour has two parts: a rolled-up row and some blocks. */
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
    // The parts may share accounts.
    deployers: Number(sorted(8).at(-1) ?? 0n),
    nativeTransfers: Number(sum(9)),
    tokenTransfers: Number(sum(10)),
    contractCalls: Number(sum(11)),
  };
}

/** An hour is kept once so many blocks lie above it: no replaced block is that deep. */
const DEPTH = 128;
/** Two days, for windows that overlap. */
const MAX_HOURS = 48;

/** The stored blocks beside an hour, and whether all of it was read whole. `above` is null while it lasts. */
interface HourFrame {
  readonly below: number | null;
  readonly above: number | null;
  readonly complete: boolean;
}

/** Keeps an hour's value until its rows change: a day has 172,800, and past ones change only while filled. */
function createHourMemo<T>(db: Sqlite, compute: (hour: number, frame: HourFrame) => T): (hour: number) => T {
  const facts = createChainFacts(db);
  const kept = boundedMap<number, { readonly frame: HourFrame; readonly stored: string; readonly value: T }>(MAX_HOURS);
  const before = db.prepare('SELECT number FROM blocks WHERE at < ? ORDER BY at DESC, number DESC LIMIT 1').pluck();
  const after = db.prepare('SELECT number FROM blocks WHERE at >= ? ORDER BY at, number LIMIT 1').pluck();
  const newest = db.prepare('SELECT max(number) FROM blocks').pluck();

  function frameOf(hour: number, full: Coverage): HourFrame {
    const below = (before.get(hour) ?? null) as number | null;
    const above = (after.get(hour + HOUR) ?? null) as number | null;
    const from = below ?? (after.get(hour) as number | undefined) ?? 0;
    // Without a block below, only the chain's first proves that nothing is missing.
    const begins = below !== null || from <= 1;
    return { below, above, complete: above !== null && begins && isCovered(full, { from, to: above }) };
  }

  return (hour) => {
    const [full, fees] = [facts.coverage('full'), facts.coverage('fees')];
    const known = kept.peek(hour);
    if (known && known.stored === storedIn(known.frame, full, fees)) return known.value;
    const frame = frameOf(hour, full);
    const value = compute(hour, frame);
    kept.delete(hour);
    if (frame.above !== null && (newest.get() as number) >= frame.above + DEPTH) {
      kept.set(hour, { frame, stored: storedIn(frame, full, fees), value });
    }
    return value;
  };
}

function isCovered(coverage: Coverage, span: Span): boolean {
  return missingFrom(coverage, span).length === 0;
}

function storedIn({ below, above }: HourFrame, ...kinds: Coverage[]): string {
  const span = { from: below ?? 0, to: above ?? 0 };
  return JSON.stringify(kinds.map((coverage) => missingFrom(coverage, span)));
}
