import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { CHILD_ENV } from '../service/child-env.ts';
import type { DiskJob, DiskResult } from './disk-program.ts';
import { faultyDiskEnv, openDiskControl } from './faulty-disk.ts';
import { readJournal } from './journal.ts';
import { writeOldLedger } from './migration-script.ts';
import { createDisk, type Survives } from './power-loss.ts';
import { openScripted } from './scripted-ledger.ts';

const PROGRAM = join(import.meta.dirname, 'disk-program.ts');
const ACKS = 'acks';
/** A file system in memory, where syncs cost nothing. What a sync does is decided by the faulty disk, not by the machine's. */
const IN_MEMORY = '/dev/shm';

/** A new folder for runs on faulty disks. */
export function diskFolder(): string {
  return realpathSync(mkdtempSync(join(existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir(), 'percall-disk-')));
}

/** Runs a job in a process of its own. Rejects when the process fails. */
export async function runDiskJob(
  job: Pick<DiskJob, 'course' | 'kind' | 'work'> & Partial<DiskJob>,
): Promise<DiskResult> {
  const { work, course } = job;
  const [first, disk] = [join(work, 'first'), join(work, 'disk')];
  for (const folder of [first, disk]) mkdirSync(folder, { recursive: true });
  if (course === 'migration' || course === 'creation') writeOldLedger(course, first);
  else await openScripted(first).stores.close();
  if (existsSync(join(first, 'ledger.db')))
    for (const copy of [join(work, 'baseline.db'), join(disk, 'ledger.db')])
      copyFileSync(join(first, 'ledger.db'), copy);
  const [control, journal] = [join(work, 'control'), join(work, 'journal')];
  openDiskControl(control).close();
  const env = await faultyDiskEnv(disk, control, job.kind === 'record' ? journal : undefined);
  const given = { faults: [], isSynced: true, ...job };
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify(given)], {
    env: { ...CHILD_ENV, ...env },
    maxBuffer: 64 * 2 ** 20,
  });
  return JSON.parse(stdout) as DiskResult;
}

/** A disk after a power cut: its files by name, how many steps were acknowledged before, and the journal's record after which it came. */
export interface CutDisk {
  readonly files: ReadonlyMap<string, Buffer>;
  readonly acknowledged: number;
  readonly record: number;
}

/**
 * The disks that power cuts leave after records of a journal, one for each of these ways to lose what no sync has covered. `isCut` says after which
 * records the power is cut.
 */
export function* cutDisks(
  work: string,
  ways: readonly Survives[],
  isCut: (record: number) => boolean,
): Generator<CutDisk> {
  const folder = join(work, 'disk');
  const start = join(work, 'baseline.db');
  const files = existsSync(start) ? [[join(folder, 'ledger.db'), readFileSync(start)] as const] : [];
  const disk = createDisk(new Map(files));
  let acknowledged = 0;
  for (const [at, record] of readJournal(join(work, 'journal')).entries()) {
    disk.apply(record);
    if (record.path.endsWith(`/${ACKS}`)) {
      if (record.kind === 'wrote') acknowledged = record.data.readUInt8(0);
      continue;
    }
    if (!isCut(at)) continue;
    for (const survives of ways) {
      const left = [...disk.cut(survives)].map(([path, bytes]) => [relative(folder, path), bytes] as const);
      yield { files: new Map(left.filter(([name]) => name !== ACKS)), acknowledged, record: at };
    }
  }
}
