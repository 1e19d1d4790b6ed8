import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { type DiskFault, openDiskControl } from './faulty-disk.ts';
import { fingerprint, SCRIPTS, type ScriptName } from './ledger-script.ts';
import { type MigrationName, migrationFaults, migrationStates } from './migration-script.ts';
import { copyAsKilled, faultsOf, type Opened, openScripted, refill, statesOf } from './scripted-ledger.ts';

// A program of its own, because a faulty disk is under a whole process. It takes one job as JSON and prints the result as JSON.

export type CourseName = ScriptName | MigrationName;

/** For `each`: a fault, the first operation that meets it, and how many operations the next is away. */
export interface SpreadFault extends DiskFault {
  readonly first: number;
  readonly stride: number;
}

/** What it does in the folder `work`: in `disk` are the files of the faulty disk, `control` controls it, `baseline.db` is the ledger at the beginning. */
export interface DiskJob {
  readonly work: string;
  readonly course: CourseName;
  /**
   * `record`: takes the course once, and notes each acknowledged step on the disk, so that the journal shows its order. After a step that failed, the
   * ledger is closed, opened again, and the course finished. `each`: takes it again and again, each time with the fault at a later operation. `shared`: opens
   * the ledger twice, as two processes of a service do. The first meets the fault, and the second makes its first write after it.
   */
  readonly kind: 'record' | 'each' | 'shared';
  /** For `record`: none or one. */
  readonly faults: readonly SpreadFault[];
  /** False: the ledger is opened without a sync, to show that losses are found. */
  readonly isSynced: boolean;
}

/** The fingerprints of the ledger before the first step and after each, and a report for each fault. */
export interface DiskResult {
  readonly states: readonly string[];
  readonly reports: readonly DiskReport[];
}

/** What the runs with a fault have shown. */
export interface DiskReport {
  /** Runs that met the fault. */
  points: number;
  /** Runs in which every step was acknowledged all the same. */
  unnoticed: number;
  /** Runs in which the same process finished the course once the disk was well. */
  wentOn: number;
  /** Runs in which only the next process could. */
  restarted: number;
  /** Runs in which `ping` said that the ledger cannot be written, while the disk was failing. */
  said: number;
  /** The codes of the errors with which steps rejected. */
  codes: string[];
  /** What must not be, each with its operation. */
  faults: string[];
}

const job = JSON.parse(process.argv[2] ?? '') as DiskJob;
const [disk, killed] = [join(job.work, 'disk'), join(job.work, 'killed')];
const before = join(job.work, 'baseline.db');
const baseline = new Map(existsSync(before) ? [['ledger.db', readFileSync(before)]] : []);
const control = openDiskControl(join(job.work, 'control'));
const isMigration = job.course === 'migration' || job.course === 'creation';
const script: ScriptName = isMigration ? 'sale' : (job.course as ScriptName);
const states = await findStates();
const reports: DiskReport[] = [];
let report = newReport();
for (const fault of job.kind === 'record' ? [job.faults[0]] : job.faults) {
  report = newReport();
  if (job.kind === 'record') await record(fault);
  else if (job.kind === 'shared' && fault) await share(fault);
  else if (fault) await each(fault);
  reports.push(report);
}
process.stdout.write(JSON.stringify({ states, reports }));

function newReport(): DiskReport {
  return { points: 0, unnoticed: 0, wentOn: 0, restarted: 0, said: 0, codes: [], faults: [] };
}

async function findStates(): Promise<string[]> {
  if (isMigration) return migrationStates(job.course as MigrationName, job.work);
  const healthy = join(job.work, 'healthy');
  refill(healthy, baseline);
  return statesOf(script, healthy);
}

/** Runs the steps from one on. Returns how many are done, and why the next one failed. */
async function run(from: number, { stores }: Opened, acknowledge = (_done: number): void => {}) {
  const steps = SCRIPTS[script];
  for (let at = from; at < steps.length; at++) {
    try {
      await steps[at]?.run(stores);
    } catch (error) {
      return { done: at, error };
    }
    acknowledge(at + 1);
  }
  return { done: steps.length, error: null };
}

async function record(fault: DiskFault | undefined): Promise<void> {
  const acks = openSync(join(disk, 'acks'), 'w');
  const acknowledge = (done: number) => void writeSync(acks, Buffer.of(done));
  if (isMigration) {
    const db = openLedgerDatabase(join(disk, 'ledger.db'));
    acknowledge(states.length - 1);
    return void db.close();
  }
  const first = openScripted(disk, job.isSynced);
  if (fault) control.arm(fault);
  const { error } = await run(0, first, acknowledge);
  report.points = fault ? control.counts().hits : 0;
  control.heal();
  await first.stores.close();
  if (!error) return;
  const next = openScripted(disk);
  // The failed step may have been made.
  const done = states.indexOf(fingerprint(next.db));
  acknowledge(done);
  await run(done, next, acknowledge);
  await next.stores.close();
}

async function share(fault: DiskFault): Promise<void> {
  const [first, second] = [openScripted(disk), openScripted(disk)];
  control.arm(fault);
  note((await run(0, first)).error);
  control.heal();
  const { done, error } = await run(1, second);
  report.faults = error === null || done > 1 ? ['the second process has relied on what was lost'] : [];
  await Promise.all([first.stores.close(), second.stores.close()]);
}

async function each(fault: SpreadFault): Promise<void> {
  for (let skip = fault.first; ; skip += fault.stride) {
    refill(disk, baseline);
    const faults = isMigration ? start({ ...fault, skip }) : await sell({ ...fault, skip });
    if (!faults) return;
    report.points += 1;
    report.faults.push(...faults.map((one) => `operation ${skip}: ${one}`));
  }
}

/** A start that migrates, with a fault. Null when it met none. */
function start(fault: DiskFault): string[] | null {
  control.arm(fault);
  let error: unknown = null;
  try {
    openLedgerDatabase(join(disk, 'ledger.db')).close();
  } catch (caught) {
    error = caught;
  }
  const { hits } = control.counts();
  control.heal();
  if (hits === 0) return null;
  note(error);
  report.restarted += error === null ? 0 : 1;
  copyAsKilled(disk, killed);
  return migrationFaults(killed, error === null, states);
}

/** The script with a fault. Null when it met none. */
async function sell(fault: DiskFault): Promise<string[] | null> {
  const opened = openScripted(disk);
  control.arm(fault);
  const { done, error } = await run(0, opened);
  const { hits } = control.counts();
  const isSaid = await opened.stores.ping().then(
    () => false,
    () => true,
  );
  control.heal();
  if (hits === 0) {
    await opened.stores.close();
    return null;
  }
  report.said += isSaid ? 1 : 0;
  note(error);
  copyAsKilled(disk, killed);
  const afterKill = await faultsOf(script, openScripted(killed), done, states);
  return [...afterKill.map((one) => `after a kill: ${one}`), ...(await inSameProcess(opened, done))];
}

function note(error: unknown): void {
  if (error === null) report.unnoticed += 1;
  const code = codeOf(error);
  if (code !== null && !report.codes.includes(code)) report.codes.push(code);
}

/** The code of the last error in a chain of causes. */
function codeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  return codeOf(error.cause) ?? (error as { code?: string }).code ?? error.message;
}

/** What the same process finds on the healthy disk, or the next one where this one refuses to write. */
async function inSameProcess(opened: Opened, done: number): Promise<string[]> {
  const isWriting = await opened.stores.payments.purgeReplies(0).then(
    () => true,
    () => false,
  );
  if (isWriting) {
    report.wentOn += 1;
    await opened.stores.ping();
    return faultsOf(script, opened, done, states);
  }
  report.restarted += 1;
  await opened.stores.close();
  return faultsOf(script, openScripted(disk), done, states);
}
