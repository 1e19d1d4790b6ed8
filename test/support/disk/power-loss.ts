import { dirname } from 'node:path';
import type { DiskRecord } from './journal.ts';

/** What a disk writes as a whole, in bytes. */
const SECTOR = 512;

/** A change that a power cut may undo: wholly, or sector by sector. */
interface Change {
  readonly at: number;
  /** Null: the file was cut to `at` bytes. */
  readonly data: Buffer | null;
  isDurable: boolean;
  /** A sync of it has failed. The system may have dropped it, and no later sync makes it durable. */
  isDoubted: boolean;
}

/** One file, whatever its name is. */
interface Inode {
  base: Buffer;
  changes: Change[];
}

/** Decides whether an unsynced sector, cut or name is on the disk after the power cut. */
export type Survives = () => boolean;

/**
 * A disk that keeps only what was synced for certain. After `apply` of some records of a journal, `cut` makes the files that a power cut there may leave:
 * - everything whose sync has succeeded, as of the begin of the sync;
 * - of all other writes any set of sectors, in any order; of all other cuts any;
 * - of the names that were made and removed since the last sync of their folder the first ones, because file systems journal names in order.
 */
export function createDisk(files: ReadonlyMap<string, Buffer>) {
  const names = new Map([...files].map(([path, base]): [string, Inode] => [path, { base, changes: [] }]));
  /** Names on the disk, and what has changed since. */
  const durableNames = new Map(names);
  let renames: { path: string; inode: Inode | null }[] = [];
  const syncs = new Map<string, { inode: Inode | null; changes: number; renames: number }>();

  function rename(path: string, inode: Inode | null): void {
    if (inode) names.set(path, inode);
    else names.delete(path);
    renames.push({ path, inode });
  }

  function note(path: string, at: number, data: Buffer | null): void {
    const inode = names.get(path);
    if (!inode) throw new Error(`a change of ${path}, which the journal does not know`);
    inode.changes.push({ at, data, isDurable: false, isDoubted: false });
  }

  function endSync(path: string, key: string, ok: boolean): void {
    const sync = syncs.get(key);
    syncs.delete(key);
    if (!sync) return;
    if (!sync.inode) {
      const done = ok ? renames.slice(0, sync.renames).filter((one) => dirname(one.path) === path) : [];
      for (const one of done) setName(durableNames, one);
      renames = renames.filter((one) => !done.includes(one));
      return;
    }
    for (const change of sync.inode.changes.slice(0, sync.changes)) {
      if (!ok && !change.isDurable) change.isDoubted = true;
      if (ok && !change.isDoubted) change.isDurable = true;
    }
  }

  return {
    apply(record: DiskRecord): void {
      const { path } = record;
      if (record.kind === 'created') rename(path, { base: Buffer.alloc(0), changes: [] });
      else if (record.kind === 'removed') rename(path, null);
      else if (record.kind === 'syncBegan') {
        const inode = names.get(path) ?? null;
        const changes = inode?.changes.length ?? 0;
        syncs.set(record.sync, { inode, changes, renames: renames.length });
      } else if (record.kind === 'syncEnded') endSync(path, record.sync, record.ok);
      else if (record.kind === 'wrote') note(path, record.at, record.data);
      else if (record.kind === 'truncated') note(path, record.at, null);
    },
    /** The files after a power cut, by path. */
    cut(survives: Survives): Map<string, Buffer> {
      const left = new Map(durableNames);
      for (const one of renames) {
        if (!survives()) break;
        setName(left, one);
      }
      return new Map([...left].map(([path, inode]) => [path, contentOf(inode, survives)]));
    },
  };
}

function setName(names: Map<string, Inode>, { path, inode }: { path: string; inode: Inode | null }): void {
  if (inode) names.set(path, inode);
  else names.delete(path);
}

function contentOf({ base, changes }: Inode, survives: Survives): Buffer {
  const ends = changes.map(({ at, data }) => at + (data?.length ?? 0));
  const content = Buffer.alloc(Math.max(base.length, ...ends));
  base.copy(content);
  let length = base.length;
  for (const { at, data, isDurable } of changes) {
    const keeps = () => isDurable || survives();
    if (!data) {
      if (!keeps()) continue;
      if (at < length) content.fill(0, at, length);
      length = at;
      continue;
    }
    for (let from = 0; from < data.length; ) {
      const to = Math.min(data.length, from + SECTOR - ((at + from) % SECTOR));
      if (keeps()) {
        // What lies between the old end and a later write is zeros, as in any file.
        data.copy(content, at + from, from, to);
        length = Math.max(length, at + to);
      }
      from = to;
    }
  }
  return content.subarray(0, length);
}
