import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The repository's root. */
export const ROOT = join(import.meta.dirname, '../..');

/** A file of the repository as text. */
export interface Source {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** Every file of the repository that matches the pattern, as it is on disk. */
export function readSources(pattern: string): Source[] {
  return globSync(pattern, { cwd: ROOT }).map((path) => ({
    path: path.replaceAll('\\', '/'),
    text: readFileSync(join(ROOT, path), 'utf8'),
  }));
}

/** The file's syntax tree, without what comments say. Its nodes have no parent links, so a walk from the top must keep track of them. */
export function parseSource({ path, text }: Source): ts.SourceFile {
  return ts.createSourceFile(path, text, {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  });
}
