import { closeSync, existsSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs';
import type Database from 'better-sqlite3';

const CHUNK_BYTES = 2 ** 20;

/**
 * Writes the log again, byte for byte, and syncs it. After a sync that has failed, the system may hold what is not on the disk and count it as written:
 * later syncs then succeed and do nothing. A checkpoint relies on them, and a power cut in the middle of it would leave a damaged file. What was written
 * anew is synced for certain. Holds the write lock meanwhile, so that no process appends. Throws when the disk still fails.
 */
export function rewriteLog(db: Database.Database): void {
  const path = `${db.name}-wal`;
  if (!existsSync(path)) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    const file = openSync(path, 'r+');
    try {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      for (let at = 0, bytes = 0; ; at += bytes) {
        bytes = readSync(file, chunk, 0, CHUNK_BYTES, at);
        if (bytes === 0) break;
        for (let done = 0; done < bytes; ) done += writeSync(file, chunk, done, bytes - done, at + done);
      }
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
  } finally {
    db.exec('ROLLBACK');
  }
}
