import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { asFileError, type Sqlite } from '../../lib/sqlite-file.ts';
import { groupOf } from './group-commit.ts';

/** A log of more than so many times `wal_autocheckpoint` shows that a reader or the disk keeps it from being copied into the file. */
const MOST_CHECKPOINTS = 4;
/** Room that a ledger needs for a batch of sales, in bytes. A full disk still takes a write into the part of the log that is used again. */
const ROOM_BYTES = 2 ** 20;

/**
 * Rejects while the ledger's log or file cannot be written, and says why. It writes only after a batch that has failed: a service that is not ready gets
 * no calls that would show that the disk is well again.
 */
export async function pingWrites(db: Sqlite): Promise<void> {
  const group = groupOf(db);
  try {
    if (group.failure) {
      await findRoom(`${db.name}-room`);
      // Writes the version that it has: a frame in the log.
      await group.commit(() => db.pragma(`user_version = ${pragma(db, 'user_version')}`));
      group.failure = null;
    }
    // SQLite copies the log into the file after a commit, and ignores a failure: the log then grows for ever, while every write succeeds.
    const most = MOST_CHECKPOINTS * pragma(db, 'wal_autocheckpoint') * pragma(db, 'page_size');
    if (group.log && group.log.bytes() > most) db.pragma('wal_checkpoint(PASSIVE)');
  } catch (error) {
    const reason = asFileError((error as Error).cause ?? error, db.name)?.reason ?? (error as Error).message;
    throw new Error(`the ledger cannot be written: ${reason}`, { cause: error });
  }
}

/** Writes a file and removes it. The bytes are random, because a file system may store zeros in no space. */
async function findRoom(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(randomBytes(ROOM_BYTES));
    await file.datasync();
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

const pragma = (db: Sqlite, name: string): number => Number(db.pragma(name, { simple: true }));
