import { closeSync, existsSync, fsyncSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartRefused } from '../../errors.ts';

/**
 * The file beside a ledger that says where it was copied to. It is no row of the ledger: so a backup that is put in its
 * place is refused too, and deleting the file undoes it.
 */
export const moveMark = (file: string): string => `${existsSync(file) ? realpathSync(file) : file}.moved`;

/** Marks a ledger as copied to another place, named without a password. The mark is on disk when this returns. */
export function markMoved(file: string, place: string, nowMs: number): void {
  const mark = moveMark(file);
  writeFileSync(mark, `${place} at ${new Date(nowMs).toISOString()}\n`, { flush: true });
  const folder = openSync(dirname(mark), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Where and when a ledger was copied to last, or null. */
export function movedTo(file: string): string | null {
  const mark = moveMark(file);
  return existsSync(mark) ? readFileSync(mark, 'utf8').trim() : null;
}

/** Throws StartRefused for a ledger that was copied to another place: a service on it would sell again what is already sold. */
export function refuseMoved(file: string): void {
  const to = movedTo(file);
  if (to === null) return;
  const why = `${file} was copied to ${to}, and would sell again what is sold there`;
  const undo = `to serve from the file, stop every service on that database and delete ${moveMark(file)}`;
  throw new StartRefused(`${why}: set LEDGER_URL, or, ${undo}`);
}
