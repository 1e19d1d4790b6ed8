import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const SOURCE = join(import.meta.dirname, 'faulty-disk.c');
const CONTROL_BYTES = 4096;
const PART_BYTES = 127;
/** The fields of the control file in their order, each of 32 bits. The part of a path follows. */
const FIELDS = ['kinds', 'skip', 'times', 'error', 'how', 'hold', 'seen', 'hits', 'held', 'failedSyncs'] as const;
type Field = (typeof FIELDS)[number];
const KINDS = { write: 1, sync: 2, truncate: 4, create: 8, remove: 16, read: 32, growing: 1 | 64 } as const;
const HOW = { fail: 0, half: 1, kill: 2, killHalf: 3 } as const;

/** One operation that fails, and from when on. */
export interface DiskFault {
  /** What fails. `growing`: a write that makes its file longer, as on a full disk. */
  readonly on: readonly (keyof typeof KINDS)[];
  readonly error: 'EIO' | 'ENOSPC';
  /** A part of the path of the files concerned; with `$` at its end, the path's end. All files of the folder, if it is missing. */
  readonly part?: string;
  /** So many matching operations succeed before. 0, if it is missing. */
  readonly skip?: number;
  /** So many fail. All until `heal`, if it is missing. */
  readonly times?: number;
  /** `half`: half of the bytes are written, and only the rest fails. `kill`, `killHalf`: the process ends there, as by kill -9. */
  readonly how?: keyof typeof HOW;
}

/** Why no disk can fail on this machine; null where it can. */
export const diskMissing = findMissing();

function findMissing(): string | null {
  if (process.platform !== 'linux') return 'LD_PRELOAD works on Linux only';
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'no C compiler (Debian: apt-get install gcc libc6-dev)';
  }
}

/** Compiles the library once for each version of its source, and returns its path. */
export async function compileFaultyDisk(): Promise<string> {
  const name = createHash('sha256').update(readFileSync(SOURCE)).digest('hex').slice(0, 16);
  const library = join(tmpdir(), `percall-faulty-disk-${name}.so`);
  if (existsSync(library)) return library;
  const part = `${library}.${process.pid}`;
  await promisify(execFile)('cc', ['-O1', '-shared', '-fPIC', '-pthread', '-o', part, SOURCE, '-ldl']);
  chmodSync(part, 0o755);
  renameSync(part, library);
  return library;
}

/** The environment of a program whose files below `folder` are on a disk that fails when `control` says so. With `journal`, every change is noted. */
export async function faultyDiskEnv(
  folder: string,
  control: string,
  journal?: string,
): Promise<Record<string, string>> {
  const library = await compileFaultyDisk();
  return {
    LD_PRELOAD: library,
    DISK_FOLDER: folder,
    DISK_CONTROL: control,
    ...(journal !== undefined && { DISK_JOURNAL: journal }),
  };
}

/** The control file of a disk. The library maps it, so a change holds from the next operation on, in every process of the program. */
export function openDiskControl(path: string) {
  if (!existsSync(path)) {
    writeFileSync(path, Buffer.alloc(CONTROL_BYTES));
    chmodSync(path, 0o666);
  }
  const file = openSync(path, 'r+');

  function set(field: Field, value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    writeSync(file, bytes, 0, 4, FIELDS.indexOf(field) * 4);
  }
  function get(field: Field): number {
    const bytes = Buffer.alloc(4);
    readSync(file, bytes, 0, 4, FIELDS.indexOf(field) * 4);
    return bytes.readInt32LE();
  }
  function setPart(part: string): void {
    const bytes = Buffer.alloc(PART_BYTES + 1);
    bytes.write(part);
    writeSync(file, bytes, 0, bytes.length, FIELDS.length * 4);
  }
  async function until(field: Field, least: number): Promise<void> {
    while (get(field) < least) await delay(5);
  }

  return {
    arm({ on, error, part = '', skip = 0, times = -1, how = 'fail' }: DiskFault): void {
      set('kinds', 0);
      setPart(part);
      const fields = { skip, times, how: HOW[how], error: constants.errno[error], seen: 0, hits: 0 };
      for (const [field, value] of Object.entries(fields)) set(field as Field, value);
      set(
        'kinds',
        on.reduce((kinds, kind) => kinds | KINDS[kind], 0),
      );
    },
    heal(): void {
      set('kinds', 0);
      set('hold', 0);
    },
    /** Holds every sync of these files until `heal`, as a disk that does not answer. */
    hold(part: string): void {
      setPart(part);
      set('hold', 1);
    },
    /** Matching operations, faults of this arming, and syncs that are held now. */
    counts: () => ({ seen: get('seen'), hits: get('hits'), held: get('held') }),
    /** Resolves once this many operations have met the fault. */
    untilHit: (least = 1): Promise<void> => until('hits', least),
    /** Resolves once a sync is held. */
    untilHeld: (): Promise<void> => until('held', 1),
    close: (): void => closeSync(file),
  };
}

export type DiskControl = ReturnType<typeof openDiskControl>;
