import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The repository's own directory. */
const REPOSITORY = join(import.meta.dirname, '../..');

/** The documents for users and contributors, as paths from the repository's root. */
export const GUIDES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('docs/*.md', { cwd: REPOSITORY }).sort(),
];

/** The guides, and the documents beside the code. */
export const DOCUMENTS: readonly string[] = [
  ...GUIDES,
  'CHANGELOG.md',
  ...globSync('{src,test}/**/*.md', { cwd: REPOSITORY }).sort(),
];

/** The files and folders of the repository that match a pattern, as paths from its root. */
export const inRepository = (pattern: string): string[] => globSync(pattern, { cwd: REPOSITORY });

/** A file's text; `path` is from the repository's root. */
export const readText = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

/** A fenced block of a document. */
export interface Block {
  readonly document: string;
  /** Its first line, from 1. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The comment on the line before it, which says how it is run. Null: there is none. */
  readonly mark: string | null;
}

/** The fenced blocks of a document, in its order. */
export function fencedBlocks(document: string, text = readText(document)): Block[] {
  return [...text.matchAll(/^(?:<!-- (.*) -->\n)?```(\w*)\n([\s\S]*?)^```$/gm)].map((found) => {
    const [, mark = null, language = '', code = ''] = found;
    return { document, line: text.slice(0, found.index).split('\n').length, language, code, mark };
  });
}

/** The contents of the fenced blocks of one language, in the document's order. */
export function blocksOf(text: string, language: string): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, name, code = '']) =>
    name === language ? [code] : [],
  );
}

/** The commands of a document's shell blocks, one per line, without trailing comments. */
export function commandsOf(text: string): string[] {
  return blocksOf(text, 'sh')
    .flatMap((block) => block.replaceAll('|\n', '|').split('\n'))
    .map((line) => line.replace(/(^|\s{2,})#\s.*$/, '').trim())
    .filter((line) => line !== '');
}
