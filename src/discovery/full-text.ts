import { setImmediate as turn } from 'node:timers/promises';
import Database from 'better-sqlite3';

// The words of documents, indexed by SQLite's FTS5 in memory. `search.ts` builds one index for each snapshot, and
// `ranking.ts` asks it for phrases.

/** The searched texts of one document, by field. */
export interface IndexedDocument {
  readonly name: string;
  readonly label: string;
  readonly keywords: string;
  readonly description: string;
  readonly params: string;
  /** Host, path and category. */
  readonly place: string;
}

/** BM25's weight of each column, in the order of the columns. */
const WEIGHTS: Record<keyof IndexedDocument, number> = {
  name: 5,
  label: 6,
  keywords: 2,
  description: 4,
  params: 1,
  place: 2,
};
const FIELDS = Object.keys(WEIGHTS) as (keyof IndexedDocument)[];

/** Documents that are added before the event loop may serve requests: some milliseconds. */
const CHUNK = 20;
/** Matches that are cached for earlier phrases, 12 bytes each. The index never changes, so they stay valid. */
const KEPT_MATCHES = 1_000_000;
const KEPT_PHRASES = 5000;

/** The documents that hold a phrase, by their places in the list, and their BM25 scores: the higher, the better. */
export interface Matches {
  readonly ids: Int32Array;
  readonly scores: Float64Array;
}

/** A full-text index of documents that never change. */
export interface DiscoveryIndex {
  /** How many documents there are. */
  readonly size: number;
  /**
   * Every document that holds the words of a phrase in this order. With `prefix` the last word may be the beginning
   * of a word. All characters but letters, marks and digits separate words, so no phrase is FTS5 syntax.
   */
  match(phrase: string, prefix?: boolean): Matches;
  close(): void;
}

/** The score of a phrase that over half of all documents hold. BM25 gives about the same, but takes milliseconds. */
const COMMON = 0.01;

const NONE: Matches = { ids: new Int32Array(0), scores: new Float64Array(0) };

/**
 * Indexes documents in slices, so that requests are served meanwhile. Words are compared by their stems and without
 * accents.
 */
export async function buildDiscoveryIndex(documents: readonly IndexedDocument[]): Promise<DiscoveryIndex> {
  const db = new Database(':memory:');
  db.exec(
    `CREATE VIRTUAL TABLE entries USING fts5(${FIELDS.join(', ')}, tokenize = 'porter unicode61 remove_diacritics 2')`,
  );
  const insert = db.prepare(
    `INSERT INTO entries (rowid, ${FIELDS.join(', ')}) VALUES (?${', ?'.repeat(FIELDS.length)})`,
  );
  const add = db.transaction((from: number, until: number) => {
    for (let id = from; id < until; id++) {
      const document = documents[id];
      if (document) insert.run(id, ...FIELDS.map((field) => document[field]));
    }
  });
  for (let from = 0; from < documents.length; from += CHUNK) {
    add(from, Math.min(from + CHUNK, documents.length));
    await turn();
  }

  const weights = FIELDS.map((field) => WEIGHTS[field]).join(', ');
  const select = db.prepare(`SELECT rowid, -bm25(entries, ${weights}) FROM entries WHERE entries MATCH ?`).raw();
  const common = db.prepare(`SELECT rowid, ${COMMON} FROM entries WHERE entries MATCH ?`).raw();
  const count = db.prepare('SELECT count(*) FROM entries WHERE entries MATCH ?').raw();
  const kept = createKept();
  return {
    size: documents.length,
    match(phrase, prefix = false) {
      const words = wordsOf(phrase);
      if (words.length === 0) return NONE;
      const expression = `"${words.join(' ')}"${prefix ? '*' : ''}`;
      const known = kept.get(expression);
      if (known) return known;
      const [holding = 0] = count.get(expression) as [number];
      const rows = (holding > documents.length / 2 ? common : select).all(expression) as [number, number][];
      const found = { ids: Int32Array.from(rows, ([id]) => id), scores: Float64Array.from(rows, ([, score]) => score) };
      kept.keep(expression, found);
      return found;
    },
    close: () => db.close(),
  };
}

/** A text's words in lower case: runs of letters, marks and digits. The result contains no syntax of FTS5. */
export function wordsOf(text: string): string[] {
  return (
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  );
}

/** Keeps matches, because scoring a word that many documents hold takes milliseconds. The oldest are dropped first. */
function createKept() {
  const kept = new Map<string, Matches>();
  let matches = 0;
  return {
    get: (expression: string) => kept.get(expression),
    keep(expression: string, found: Matches): void {
      kept.set(expression, found);
      matches += found.ids.length;
      for (const [oldest, { ids }] of kept) {
        if (matches <= KEPT_MATCHES && kept.size <= KEPT_PHRASES) break;
        kept.delete(oldest);
        matches -= ids.length;
      }
    },
  };
}
