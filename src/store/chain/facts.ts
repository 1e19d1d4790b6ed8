import { type Coverage, cover, type Span, uncover } from '../../lib/coverage.ts';
import type { Sqlite } from '../sqlite/database.ts';

/** What is read of the chain, by kind. */
export type CoverageKind = 'full' | 'fees' | 'logs';
/** What is stored of it. `accounts` are kept of blocks that were read whole; versions before kept none. */
type StoredKind = CoverageKind | 'accounts';

/** The newest block that a provider reported, and when the collector saw the head advance (Unix milliseconds). */
export interface StoredHead {
  readonly number: number;
  readonly hash: `0x${string}`;
  readonly at: number;
  readonly advancedMs: number;
}

/** Every kind, for what ends or replaces stored blocks. */
export const STORED_KINDS: readonly StoredKind[] = ['full', 'fees', 'logs', 'accounts'];

/** The table `facts`. Each call reads the table (microseconds), so that a rolled-back transaction leaves nothing wrong in memory. */
export interface ChainFacts {
  get(name: string): string | null;
  /** Runs inside the caller's transaction, or in its own. */
  set(name: string, value: string): void;
  coverage(kind: StoredKind): Coverage;
  cover(kind: StoredKind, span: Span): void;
  uncover(kind: StoredKind, span: Span): void;
  head(): StoredHead | null;
  storeHead(head: StoredHead): void;
  /** The oldest block ever stored whole. */
  first(): number | null;
  noteFirst(block: number): void;
  /** Whole blocks that were rolled up. */
  rolledUp(): number;
  noteRolledUp(blocks: number): void;
}

/** `logs`, `fees`, `full` and `accounts` hold JSON lists of `[from, to]`; `head` the JSON of StoredHead; the others plain text. */
export function createChainFacts(db: Sqlite): ChainFacts {
  const select = db.prepare('SELECT value FROM facts WHERE name = ?').pluck();
  const upsert = db.prepare(
    'INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  );
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
