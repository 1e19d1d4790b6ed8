import type { Sqlite } from '../sqlite/database.ts';
import { createHourMemo, HOUR } from './hour-memo.ts';
import { keptUntilWritten } from './kept-until-written.ts';

/** The totals of an hour; `at` is its first second. */
export interface HourTotals {
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
type Row = [bigint, bigint, bigint, bigint, bigint, number, bigint, bigint, bigint, bigint, bigint, bigint, bigint];

/** The hours that were asked for are kept until `version` changes: the running hour has up to 7,200 rows, too many to sum up for each call. */
export function createHourReads(db: Sqlite, version: () => number): HourReads {
  const raw = db.prepare(RAW).raw().safeIntegers();
  const rolledUp = db.prepare(ROLLED_UP).raw().safeIntegers();
  const totals = createHourMemo(db, (hour, frame) => {
    const old = rolledUp.get(hour) as Row | undefined;
    const fresh = raw.get(hour, hour + HOUR) as Row;
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
function toTotals(at: number, parts: readonly Row[], complete: boolean): HourTotals {
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
