import type { Sqlite } from '../sqlite/database.ts';

/** A contract whose code was not read yet. */
export interface PendingCode {
  readonly block: number;
  readonly transactionHash: Buffer;
  readonly address: Buffer;
  /** Unix seconds. */
  readonly at: number;
}

/** A contract whose label may have come since it was last looked at. */
export interface DueLook extends PendingCode {
  readonly codeBytes: number;
  readonly codeHash: Buffer;
}

/** The collector's own reads of its database. */
export interface ChainLookups {
  /** The hash of a block that was read whole; null when it was not. */
  hashOf(block: number): Buffer | null;
  /** The parent hash of such a block. */
  parentOf(block: number): Buffer | null;
  /** The time of the nearest stored block at or below `block`, else of the lowest stored one; null when no block is stored. */
  atOf(block: number): number | null;
  /** The time of the newest block read whole. */
  newestAt(): number | null;
  /** Newest first. */
  pendingCode(limit: number): PendingCode[];
  /** The contracts that are to be looked at again by `now` (Unix seconds), those that came due last first. */
  dueLooks(now: number, limit: number): DueLook[];
  /** Mean seconds between the newest `blocks` rows read whole; null when they span no time. */
  blockTime(blocks: number): number | null;
}

/** Prepared reads over the chain database; all of them go through a primary key. */
export function createChainLookups(db: Sqlite): ChainLookups {
  const links = db.prepare('SELECT hash, parent_hash FROM blocks WHERE number = ? AND exact = 1').raw();
  const below = db.prepare('SELECT at FROM blocks WHERE number <= ? ORDER BY number DESC LIMIT 1').pluck();
  const lowest = db.prepare('SELECT at FROM blocks ORDER BY number LIMIT 1').pluck();
  const pending = db.prepare(
    `SELECT block, transaction_hash AS transactionHash, address, at FROM deploys WHERE code_bytes IS NULL
      ORDER BY block DESC, transaction_hash LIMIT ?`,
  );
  const due = db.prepare(
    `SELECT block, transaction_hash AS transactionHash, address, at, code_bytes AS codeBytes, code_hash AS codeHash
       FROM deploys WHERE look_at <= ? ORDER BY look_at DESC LIMIT ?`,
  );
  const newest = db.prepare('SELECT number, at FROM blocks WHERE exact = 1 ORDER BY number DESC LIMIT 1').raw();
  const before = db
    .prepare('SELECT number, at FROM blocks WHERE number >= ? AND exact = 1 ORDER BY number LIMIT 1')
    .raw();
  const linksOf = (block: number) => links.get(block) as [Buffer, Buffer] | undefined;
  return {
    hashOf: (block) => linksOf(block)?.[0] ?? null,
    parentOf: (block) => linksOf(block)?.[1] ?? null,
    atOf: (block) => (below.get(block) ?? lowest.get() ?? null) as number | null,
    newestAt: () => (newest.get() as [number, number] | undefined)?.[1] ?? null,
    pendingCode: (limit) => pending.all(limit) as PendingCode[],
    dueLooks: (now, limit) => due.all(now, limit) as DueLook[],
    blockTime(blocks) {
      const last = newest.get() as [number, number] | undefined;
      const first = last && (before.get(last[0] - blocks) as [number, number] | undefined);
      if (!last || !first || last[1] <= first[1]) return null;
      return (last[1] - first[1]) / (last[0] - first[0]);
    },
  };
}
