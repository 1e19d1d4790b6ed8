import { readFileSync } from 'node:fs';

/** One line of the disk's journal: a change of a file, or the begin or end of a sync. */
export type DiskRecord =
  | { readonly kind: 'wrote'; readonly path: string; readonly at: number; readonly data: Buffer }
  | { readonly kind: 'truncated'; readonly path: string; readonly at: number }
  | { readonly kind: 'created' | 'removed'; readonly path: string }
  | { readonly kind: 'syncBegan'; readonly path: string; readonly sync: string }
  | { readonly kind: 'syncEnded'; readonly path: string; readonly sync: string; readonly ok: boolean };

const HEAD_BYTES = 16;
const KINDS: Record<string, DiskRecord['kind']> = {
  w: 'wrote',
  t: 'truncated',
  c: 'created',
  r: 'removed',
  b: 'syncBegan',
  e: 'syncEnded',
};

/** Reads what faulty-disk.c has noted, oldest first. */
export function readJournal(file: string): DiskRecord[] {
  const bytes = readFileSync(file);
  const records: DiskRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const kind = KINDS[String.fromCharCode(bytes.readUInt8(at))];
    const [pathBytes, dataBytes] = [bytes.readUInt16LE(at + 2), bytes.readUInt32LE(at + 4)];
    const [ok, place] = [bytes.readUInt8(at + 1) === 1, bytes.readBigInt64LE(at + 8)];
    at += HEAD_BYTES;
    const path = bytes.toString('utf8', at, at + pathBytes);
    const data = bytes.subarray(at + pathBytes, at + pathBytes + dataBytes);
    at += pathBytes + dataBytes;
    // A sync's place is its thread and descriptor, which tell apart syncs that overlap.
    if (kind === 'wrote') records.push({ kind, path, at: Number(place), data });
    else if (kind === 'truncated') records.push({ kind, path, at: Number(place) });
    else if (kind === 'syncBegan') records.push({ kind, path, sync: String(place) });
    else if (kind === 'syncEnded') records.push({ kind, path, sync: String(place), ok });
    else if (kind) records.push({ kind, path });
    else throw new Error(`the disk's journal has an unknown record at byte ${at}`);
  }
  return records;
}
