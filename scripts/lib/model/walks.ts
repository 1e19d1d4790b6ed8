import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { inOwnFolder } from './in-own-folder.ts';

const run = promisify(execFile);
const MODEL = resolve('docs/model/authorization.pml');
/** Bounds of a walk. It explores one order of steps, so it may be long. */
const BOUNDS = { CALLS: 14, CRASHES: 8, PAUSES: 40, REVERTS: 30 };
const STEPS = 1500;

/** The ledger's row in the model, after a write. `state` 0 is no row. */
export interface ModelRow {
  readonly state: number;
  readonly id: number;
  readonly request: number;
  readonly content: number;
  /** Whether a transaction is noted, a settlement has moved nothing before, and the payment has failed for good. */
  readonly noted: boolean;
  readonly tried: boolean;
  readonly final: boolean;
}

/** A write of the ledger that a walk makes: by the process of an instance and its boot. `given` depends on the write. */
export interface ModelWrite {
  readonly what: string;
  readonly instance: number;
  readonly boot: number;
  readonly given: readonly number[];
  readonly after: ModelRow;
}

/**
 * The ledger's writes in one random walk of `authorization.pml`, in their order. The same number gives the same walk. Odd walks have one content, even
 * walks two. Without the fencing token: SQLite has no lease, and the lease has its own suites.
 */
export async function walk(number: number): Promise<readonly ModelWrite[]> {
  const bounds = Object.entries({ ...BOUNDS, CONTENTS: 2 - (number % 2) }).map(([name, value]) => `-D${name}=${value}`);
  const flags = ['-DWALK', '-DOFF=FENCING_TOKEN', ...bounds, `-n${number}`, `-u${STEPS}`, '-T'];
  const { stdout } = await inOwnFolder((cwd) => run('spin', [...flags, MODEL], { cwd, maxBuffer: 64 * 2 ** 20 }));
  return stdout.split('\n').flatMap((line) => {
    const [, what = '', before = '', after = ''] = /^\s*@ (\w+) ([\d ]+)\| ([\d ]+)$/.exec(line) ?? [];
    return what === '' ? [] : [writeOf(what, numbers(before), numbers(after))];
  });
}

const numbers = (text: string): number[] => text.trim().split(' ').map(Number);

function writeOf(what: string, [instance = 0, boot = 0, ...given]: number[], after: number[]): ModelWrite {
  const [state = 0, id = 0, request = 0, content = 0, noted = 0, tried = 0, final = 0] = after;
  const row = { state, id, request, content, noted: noted === 1, tried: tried === 1, final: final === 1 };
  return { what, instance, boot, given, after: row };
}
