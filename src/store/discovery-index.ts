import { setImmediate as turn } from 'node:timers/promises';
import Database from 'better-sqlite3';

/** The searched texts of one document, by field. */
export interface IndexedDocument {
  readonly name: string;
  readonly label: string;
  readonly keywords: string;
  readonly description: string;
  readonly params: string;
  /** Host, path, site and category. */
  readonly place: string;
}

/** How much a word counts where it stands; BM25's weights by field, in the order of the columns. */
const WEIGHTS: Record<keyof IndexedDocument, number> = {
  name: 5,
  label: 6,
  keywords: 2,
  description: 4,
  params: 1,
  place: 2,
};
const FIELDS = Object.keys(WEIGHTS) as (keyof IndexedDocument)[];

/** Documents added before others have a turn: about three milliseconds. */
const CHUNK = 100;
/** Phrases whose matches are kept; the index never changes, so they stay right. */
const KEPT_PHRASES = 500;
/** A match list that is kept is at most this long: those of common words would fill the memory. */
const KEPT_MATCHES = 1000;

/** A document that holds a phrase: its place in the list that was indexed, and its BM25 score, more for a better match. */
export interface Match {
  readonly id: number;
  readonly score: number;
}

/** A full-text index of documents that never change. */
export interface DiscoveryIndex {
  /**
   * Every document that holds the words of a phrase in this order; with `prefix` the last of them may go on. The words are data: letters and
   * digits, everything else is taken for what separates them.
   */
  match(phrase: string, prefix?: boolean): readonly Match[];
  close(): void;
}

/**
 * Indexes documents by SQLite's FTS5 in memory, in slices, so that requests are served meanwhile. Words are compared by their stems and
 * without accents. The index is whole or not there at all: whoever replaces one by another swaps a reference.
 */
export async function buildDiscoveryIndex(documents: readonly IndexedDocument[]): Promise<DiscoveryIndex> {
  const db = new Database(':memory:');
  db.exec(
    `CREATE VIRTUAL TABLE entries USING fts5(${FIELDS.join(', ')},
       tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2 3 4', detail = full)`,
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
  // One segment: a look-up reads one tree.
  db.exec("INSERT INTO entries (entries) VALUES ('optimize')");

  const select = db
    .prepare(`SELECT rowid, -bm25(entries, ${FIELDS.map((field) => WEIGHTS[field]).join(', ')}) FROM entries WHERE entries MATCH ?`)
    .raw();
  const kept = new Map<string, readonly Match[]>();
  return {
    match(phrase, prefix = false) {
      const words = wordsOf(phrase);
      if (words.length === 0) return [];
      const expression = `"${words.join(' ')}"${prefix ? '*' : ''}`;
      const known = kept.get(expression);
      if (known) return known;
      const found = (select.all(expression) as [number, number][]).map(([id, score]) => ({ id, score }));
      if (found.length <= KEPT_MATCHES) keep(kept, expression, found);
      return found;
    },
    close: () => db.close(),
  };
}

/** A text's words in lower case: runs of letters, marks and digits. Nothing that means anything to FTS5's query syntax is left. */
export function wordsOf(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
}

function keep(kept: Map<string, readonly Match[]>, expression: string, found: readonly Match[]): void {
  const oldest = kept.size >= KEPT_PHRASES ? kept.keys().next().value : undefined;
  if (oldest !== undefined) kept.delete(oldest);
  kept.set(expression, found);
}
