import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { inOwnFolder } from './in-own-folder.ts';

const run = promisify(execFile);
const OUTPUT = { maxBuffer: 256 * 2 ** 20 };
const MODEL = resolve('docs/model/authorization.pml');
/** Bounds of a walk. It explores one order of steps, so it may be long. */
const BOUNDS = { CALLS: 14, CRASHES: 8, PAUSES: 40, REVERTS: 30 };
const STEPS = 1500;
/**
 * Draws the walks from $1 to $2, each after a line with its number. One shell starts Spin for all of them, and `cat` stands in for its preprocessor,
 * which has been over the model already: a walk takes a fraction of the time that both would.
 */
const DRAW = `number=$1
while [ $number -le $2 ]; do
  echo "walk $number"
  spin '-Pexec cat' -n$number -u${STEPS} -T contents$((2 - number % 2)).pml || exit
  number=$((number + 1))
done`;

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
 * The ledger's writes in the random walks `from` to `to` of `authorization.pml`, in their order. The same number gives the same walk. Odd walks have
 * one content, even walks two. Without the fencing token: SQLite has no lease, and the lease has its own suites.
 */
export async function drawWalks(from: number, to: number): Promise<readonly (readonly ModelWrite[])[]> {
  const { stdout } = await inOwnFolder(async (cwd) => {
    for (const contents of [1, 2]) {
      const bounds = Object.entries({ ...BOUNDS, CONTENTS: contents }).map(([name, value]) => `-D${name}=${value}`);
      const macros = ['-DWALK', '-DOFF=FENCING_TOKEN', ...bounds];
      await run('cc', ['-E', '-P', '-xc', ...macros, '-o', `contents${contents}.pml`, MODEL], { cwd });
    }
    return run('sh', ['-c', DRAW, 'sh', String(from), String(to)], { cwd, ...OUTPUT });
  });
  const walks: ModelWrite[][] = [];
  for (const line of stdout.split('\n')) {
    const [, what, before = '', after = ''] = /^\s*@ (\w+) ([\d ]+)\| ([\d ]+)$/.exec(line) ?? [];
    if (line === `walk ${from + walks.length}`) walks.push([]);
    else if (what) walks.at(-1)?.push(writeOf(what, numbers(before), numbers(after)));
  }
  if (walks.length !== to - from + 1) throw new Error(`Spin drew ${walks.length} of the walks ${from} to ${to}`);
  return walks;
}

const numbers = (text: string): number[] => text.trim().split(' ').map(Number);

function writeOf(what: string, [instance = 0, boot = 0, ...given]: number[], after: number[]): ModelWrite {
  const [state = 0, id = 0, request = 0, content = 0, noted = 0, tried = 0, final = 0] = after;
  const row = { state, id, request, content, noted: noted === 1, tried: tried === 1, final: final === 1 };
  return { what, instance, boot, given, after: row };
}
