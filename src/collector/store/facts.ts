import { type Coverage, cover, type Span, sizeOf, uncover } from '../../lib/coverage.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';

// What the collector knows of its database and of itself: the stored spans and the head, its own reads, and its state
// for the service.

/** In seconds. */
export const HOUR = 3600;

export function hourOf(at: number): number {
  return Math.floor(at / HOUR) * HOUR;
}

/** Blocks whole, base fees and utilisation, logs. */
export type CoverageKind = 'full' | 'fees' | 'logs';
/** `accounts`: of blocks that were read whole since a version that keeps them. */
type StoredKind = CoverageKind | 'accounts';

/** `at` in Unix seconds. */
export interface SeenHead {
  readonly number: number;
  readonly hash: `0x${string}`;
  readonly at: number;
}

export interface StoredHead extends SeenHead {
  /** When it was seen to advance, in Unix milliseconds. */
  readonly advancedMs: number;
}

/** `hash` is null when no provider had the genesis block. */
export interface StoredIdentity {
  readonly chainId: number;
  readonly hash: string | null;
}

/** A stored block; `at` in Unix seconds. */
export interface BlockPlace {
  readonly block: number;
  readonly at: number;
}

export const STORED_KINDS: readonly StoredKind[] = ['full', 'fees', 'logs', 'accounts'];

/** The table `facts`. Each call reads it (microseconds): a rollback leaves nothing wrong in memory. */
export interface ChainFacts {
  get(name: string): string | null;
  /** In the caller's transaction, or its own. */
  set(name: string, value: string): void;
  coverage(kind: StoredKind): Coverage;
  cover(kind: StoredKind, span: Span): void;
  uncover(kind: StoredKind, span: Span): void;
  /** Null when no collector has read it yet. */
  identity(): StoredIdentity | null;
  /** Null for a block that is not stored. */
  placeOf(block: number | null | undefined): BlockPlace | null;
  head(): StoredHead | null;
  storeHead(head: StoredHead): void;
  first(): number | null;
  noteFirst(block: number): void;
  rolledUp(): number;
  noteRolledUp(blocks: number): void;
}

/** A kind holds a JSON list of `[from, to]`, `head` JSON of StoredHead, others plain text. */
export function createChainFacts(db: Sqlite): ChainFacts {
  const select = db.prepare('SELECT value FROM facts WHERE name = ?').pluck();
  const upsert = db.prepare(
    'INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  );
  const timeOf = db.prepare('SELECT at FROM blocks WHERE number = ?').pluck();
  const get = (name: string) => (select.get(name) as string | undefined) ?? null;
  const set = (name: string, value: string) => void upsert.run(name, value);
  const readSpans = (kind: StoredKind): Coverage => {
    const pairs = JSON.parse(get(kind) ?? '[]') as [number, number][];
    return pairs.map(([from, to]) => ({ from, to }));
  };
  const storeSpans = (kind: StoredKind, coverage: Coverage) =>
    set(kind, JSON.stringify(coverage.map(({ from, to }) => [from, to])));
  return {
    get,
    set,
    coverage: readSpans,
    cover: (kind, span) => storeSpans(kind, cover(readSpans(kind), span)),
    uncover: (kind, span) => storeSpans(kind, uncover(readSpans(kind), span)),
    identity: () => JSON.parse(get('identity') ?? 'null') as StoredIdentity | null,
    placeOf(block) {
      const at = timeOf.get(block ?? null) as number | undefined;
      return block == null || at === undefined ? null : { block, at };
    },
    head: () => JSON.parse(get('head') ?? 'null') as StoredHead | null,
    storeHead: (head) => set('head', JSON.stringify(head)),
    first: () => (get('first') === null ? null : Number(get('first'))),
    noteFirst(block) {
      const known = get('first');
      if (known === null || block < Number(known)) set('first', String(block));
    },
    rolledUp: () => Number(get('rolledUp') ?? 0),
    noteRolledUp: (blocks) => set('rolledUp', String(Number(get('rolledUp') ?? 0) + blocks)),
  };
}

interface PendingCode {
  readonly block: number;
  readonly transactionHash: Buffer;
  readonly address: Buffer;
  readonly at: number;
}

interface DueLook extends PendingCode {
  readonly codeBytes: number;
  readonly codeHash: Buffer;
}

/** Times in Unix seconds. */
export interface ChainLookups {
  /** Null for a block that was not read whole. */
  hashOf(block: number): Buffer | null;
  parentOf(block: number): Buffer | null;
  /** Of the nearest stored block at or below, else of the lowest. */
  atOf(block: number): number | null;
  newestAt(): number | null;
  /** Newest first. */
  pendingCode(limit: number): PendingCode[];
  /** Those that came due last first. */
  dueLooks(now: number, limit: number): DueLook[];
  /** Mean seconds between the newest `blocks` read whole; null when they span no time. */
  blockTime(blocks: number): number | null;
}

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

/** Current and free to read. Null before it is known; `Ms` is in Unix milliseconds. */
export interface CollectorStatus {
  readonly head: SeenHead | null;
  /** When the head was seen to rise. Survives restarts. */
  readonly headAdvancedMs: number | null;
  readonly headCheckedMs: number | null;
  /** The newest block stored whole. */
  readonly collected: { readonly number: number; readonly at: number } | null;
  /** The oldest block ever stored whole; it may be rolled up. */
  readonly firstCollected: number | null;
  /** Blocks stored whole, the rolled-up ones included. */
  readonly blocksCollected: number;
  readonly blockTimeSeconds: number | null;
  /** The window of past blocks that a first start fills. */
  readonly backfill: {
    /** Of whole blocks, 0 to 1, as are those of base fees (filled first) and logs. */
    readonly share: number;
    /** Mean over the last minute; 0 when nothing is being filled. */
    readonly blocksPerSecond: number;
    /** Null while the rate is unknown; 0 when complete. */
    readonly secondsLeft: number | null;
    readonly feesShare: number;
    readonly logsShare: number;
  };
  /** Grows with every commit. An answer is valid until then. */
  readonly version: number;
  /** Why the last commit failed, such as a full disk. */
  readonly fault: string | null;
  /** Since start. */
  readonly counters: {
    readonly requests: number;
    /** Contradictory answers by reason. */
    readonly refused: Readonly<Record<string, number>>;
    /** Parent hashes that did not fit, against deterministic finality. */
    readonly reorgs: number;
    readonly replacedBlocks: number;
    readonly failures: number;
  };
}

export interface CollectorView {
  status(): CollectorStatus;
}

/** A collector that is switched off. */
export const NO_COLLECTOR: CollectorView = {
  status: () => ({
    head: null,
    headAdvancedMs: null,
    headCheckedMs: null,
    collected: null,
    firstCollected: null,
    blocksCollected: 0,
    blockTimeSeconds: null,
    backfill: { share: 0, blocksPerSecond: 0, secondsLeft: null, feesShare: 0, logsShare: 0 },
    version: 0,
    fault: null,
    counters: { requests: 0, refused: {}, reorgs: 0, replacedBlocks: 0, failures: 0 },
  }),
};

/** Blocks over which the time of one is measured: ten minutes on Arc. */
const BLOCK_TIME_OVER = 1200;

export function readCollected(
  { facts, lookups }: { readonly facts: ChainFacts; readonly lookups: ChainLookups },
  full: Coverage,
): Pick<CollectorStatus, 'collected' | 'firstCollected' | 'blocksCollected' | 'blockTimeSeconds'> {
  const top = full.at(-1)?.to;
  const at = top === undefined ? null : lookups.atOf(top);
  return {
    collected: top === undefined || at === null ? null : { number: top, at },
    firstCollected: facts.first(),
    blocksCollected: sizeOf(full) + facts.rolledUp(),
    blockTimeSeconds: lookups.blockTime(BLOCK_TIME_OVER),
  };
}

/** Reads once between two writes: `version` differs after each. A failed read is not kept. */
export function keptUntilWritten<T>(version: () => number, read: () => T): () => T {
  let kept: { readonly version: number; readonly value: T } | null = null;
  return () => {
    const now = version();
    if (kept?.version !== now) kept = { version: now, value: read() };
    return kept.value;
  };
}
