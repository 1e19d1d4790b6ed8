import type { Sqlite } from '../sqlite/database.ts';
import type { AccountWrites } from './account-writes.ts';
import { type ChainFacts, STORED_KINDS } from './facts.ts';

const HOUR = 3600;

/** Adds a part of an hour to the hour's row. A block near the boundary may come later than the rest, because fee rows have interpolated times. */
const ROLL_UP = `
  INSERT INTO hours (at, blocks, counted_blocks, min_base_fee, avg_base_fee, max_base_fee, utilisation,
                     transactions, deploys, deployers, native_transfers, token_transfers, contract_calls)
  SELECT @hour, count(*), count(transactions), min(base_fee), CAST(round(avg(base_fee)) AS INTEGER), max(base_fee), avg(utilisation),
         coalesce(sum(transactions), 0), coalesce(sum(deploys), 0),
         (SELECT count(DISTINCT deployer) FROM deploys WHERE at >= @hour AND at < @end),
         coalesce(sum(native_transfers), 0), coalesce(sum(token_transfers), 0), coalesce(sum(contract_calls), 0)
    FROM blocks WHERE at >= @hour AND at < @end
  ON CONFLICT (at) DO UPDATE
     SET avg_base_fee = CAST(round((avg_base_fee * 1.0 * blocks + excluded.avg_base_fee * 1.0 * excluded.blocks)
                                   / (blocks + excluded.blocks)) AS INTEGER),
         utilisation = (utilisation * blocks + excluded.utilisation * excluded.blocks) / (blocks + excluded.blocks),
         min_base_fee = min(min_base_fee, excluded.min_base_fee), max_base_fee = max(max_base_fee, excluded.max_base_fee),
         deployers = max(deployers, excluded.deployers), blocks = blocks + excluded.blocks,
         counted_blocks = counted_blocks + excluded.counted_blocks, transactions = transactions + excluded.transactions,
         deploys = deploys + excluded.deploys, native_transfers = native_transfers + excluded.native_transfers,
         token_transfers = token_transfers + excluded.token_transfers, contract_calls = contract_calls + excluded.contract_calls`;

/** Statements of retention; the caller holds the transaction. */
export interface Rollup {
  /** Rolls up the oldest hour that ended by `before`; false when there is none. */
  rollUpHour(before: number): boolean;
  /** Deletes hours that began before `before`. */
  dropHours(before: number): void;
}

/** One hour a call (7,200 rows of half-second blocks), so that no commit holds the event loop for long. */
export function createRollup(db: Sqlite, facts: ChainFacts, accounts: Pick<AccountWrites, 'prune'>): Rollup {
  const oldest = db.prepare('SELECT min(at) FROM blocks').pluck();
  const highest = db.prepare('SELECT max(number), count(transactions) FROM blocks WHERE at < ?').raw();
  const rollUp = db.prepare(ROLL_UP);
  const dropHours = db.prepare('DELETE FROM hours WHERE at < ?');
  const prune = ['blocks', 'deploys', 'trades', 'operation_costs', 'tips'].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE at < ?`),
  );
  const pruneProbes = db.prepare('DELETE FROM probes WHERE at_ms < ?');
  return {
    rollUpHour(before) {
      const first = oldest.get() as number | null;
      if (first === null) return false;
      const hour = Math.floor(first / HOUR) * HOUR;
      const end = hour + HOUR;
      if (end > before) return false;
      const [top, whole] = highest.get(end) as [number, number];
      rollUp.run({ hour, end });
      for (const statement of prune) statement.run(end);
      pruneProbes.run(end * 1000);
      accounts.prune(end);
      for (const kind of STORED_KINDS) facts.uncover(kind, { from: 0, to: top });
      facts.noteRolledUp(whole);
      return true;
    },
    dropHours: (before) => void dropHours.run(before),
  };
}
