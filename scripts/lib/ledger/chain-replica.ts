import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backUpDatabase, flush } from '../../../src/store/backup.ts';

/** The file that instances with CHAIN_DB_URL read. */
const NAME = 'chain.db';
const DRAFT = /^chain\.db\.(\d+)\.next/;

/**
 * Copies a chain database while the service writes to it, checks the copy, and renames it over the last copy.
 * So a reader of `chain.db` in that directory sees the old copy or the new one. Returns the copy's path and its number of rows.
 */
export async function replaceChainCopy(source: string, directory: string): Promise<{ file: string; rows: number }> {
  const file = join(directory, NAME);
  const draft = `${file}.${process.pid}.next`;
  mkdirSync(directory, { recursive: true });
  clearDrafts(directory);
  try {
    const tables = await backUpDatabase(source, draft);
    renameSync(draft, file);
    flush(directory);
    return { file, rows: Object.values(tables).reduce((sum, count) => sum + count, 0) };
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Removes drafts of killed copiers. A draft with our own process id is one of those too, because ids are reused. */
function clearDrafts(directory: string): void {
  for (const name of readdirSync(directory)) {
    const pid = Number(DRAFT.exec(name)?.[1] ?? 0);
    if (pid > 0 && (pid === process.pid || !isAlive(pid))) rmSync(join(directory, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
