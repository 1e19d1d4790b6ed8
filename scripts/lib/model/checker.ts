import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inOwnFolder } from './in-own-folder.ts';
import type { Bounds, Guard, Model } from './models.ts';

const run = promisify(execFile);
/** Steps of one path. The longest path of the full runs has 200. */
const MOST_STEPS = 100_000;
/** Megabytes of states that a run may keep. */
const MOST_MEGABYTES = 12_000;
const OUTPUT = { maxBuffer: 64 * 2 ** 20 };
/** The size of the table of states, as a power of two. Where a fault is found among the first states, clearing a large table would take longer. */
const TABLE = { usual: 24, untilFault: 20 };
/** A run looks states up all over its memory. In huge pages of 2 MB, where the kernel offers them, each look-up is quicker. */
const HUGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' };
/** Bytes of one state at most. Spin ends a run that needs more. A run is quicker with a smaller bound. */
const STATE_BYTES = { small: 512, large: 2048 };

/** What a run has found. */
export interface Checked {
  /** Whether an invariant fails. */
  readonly isViolated: boolean;
  /** Distinct states. Where an invariant fails, those until then. */
  readonly states: number;
  readonly seconds: number;
  readonly megabytes: number;
}

interface Run {
  readonly bounds: Bounds;
  /** Guards that are off. */
  readonly off?: string;
  readonly offToo?: string | undefined;
  /** The one invariant to check. All, if it is missing. */
  readonly invariant?: string;
}

/** A compiled model. The bounds, the guards that are off and the invariant are settings of each run, so that it is compiled once. */
export interface Checker {
  /**
   * Explores all states within these bounds, or until an invariant fails. Rejects when the bounds of memory or depth end the run: then nothing is
   * shown.
   */
  check(wanted: Run): Promise<Checked>;
  close(): Promise<void>;
}

/** Whether Spin and a C compiler are installed. */
export async function canCheck(): Promise<boolean> {
  const found = await Promise.allSettled([run('spin', ['-V']), run('cc', ['--version'])]);
  return found.every(({ status }) => status === 'fulfilled');
}

/** Compiles a model. `large` takes longer, and its runs are quicker and keep their states in less memory. Rejects when Spin or the compiler fails. */
export async function openChecker(model: Model, { large = false } = {}): Promise<Checker> {
  const folder = await mkdtemp(join(tmpdir(), 'percall-model-'));
  const close = () => rm(folder, { recursive: true });
  const names = Object.keys(settingsOf(model, { bounds: model.small[0] }));
  try {
    await copyModel(model, folder);
    await writeFile(join(folder, 'settings.h'), settingsHeader(names));
    // The small runs have the memory for states as they are, so they need no time to compress them.
    const speed = large
      ? ['-O2', '-DCOLLAPSE', `-DVECTORSZ=${STATE_BYTES.large}`]
      : ['-Og', '-DNOCOMP', `-DVECTORSZ=${STATE_BYTES.small}`];
    const flags = ['-include', 'settings.h', ...speed];
    const macros = names.map((name) => `-D${name}=c_expr{setting_${name}}`);
    await build(folder, macros, [...flags, `-DMEMLIM=${MOST_MEGABYTES}`]);
  } catch (error) {
    await close();
    throw error;
  }
  return { check: (wanted) => check(folder, model, wanted), close };
}

async function check(folder: string, model: Model, wanted: Run): Promise<Checked> {
  const startedMs = performance.now();
  const settings = Object.entries(settingsOf(model, wanted)).map(([name, value]) => [name, String(value)]);
  const table = wanted.off ? TABLE.untilFault : TABLE.usual;
  const options = { cwd: folder, env: { ...HUGE_PAGES, ...Object.fromEntries(settings) }, ...OUTPUT };
  const { stdout } = await run('./pan', ['-E', `-m${MOST_STEPS}`, `-w${table}`], options);
  const isViolated = /assertion violated/.test(stdout);
  const states = Number(/([\d.e+]+) states, stored/.exec(stdout)?.[1] ?? Number.NaN);
  // Without compression Spin writes one line of memory, in other words.
  const megabytes = Number(/([\d.]+)\s+(?:total actual )?memory usage/.exec(stdout)?.[1] ?? Number.NaN);
  if (/too small|out of memory|incomplete/.test(stdout) || Number.isNaN(states) || Number.isNaN(megabytes))
    throw new Error(`the run was cut off:\n${stdout}`);
  return { isViolated, states, megabytes, seconds: (performance.now() - startedMs) / 1000 };
}

/** The shortest way to the fault without this guard, a line a step: the process, the line of the model, and its statement. */
export function trace(model: Model, guard: Guard): Promise<readonly string[]> {
  return inOwnFolder(async (folder) => {
    await copyModel(model, folder);
    // Spin follows the steps itself, and it runs no C: the settings are constants.
    const settings = Object.entries(settingsOf(model, runWithout(model, guard)));
    const macros = settings.map(([name, value]) => `-D${name}=${value}`);
    await build(folder, macros, ['-O1', '-DBFS', `-DVECTORSZ=${STATE_BYTES.large}`]);
    await run('./pan', ['-E'], { cwd: folder, ...OUTPUT });
    const { stdout } = await run('spin', [...macros, '-t', '-p', 'model.pml'], { cwd: folder, ...OUTPUT });
    return stdout.split('\n').flatMap((line) => {
      const step = /proc +\d+ \((\w+):\d+\) model\.pml:(\d+) .*?\[(.*)\]/.exec(line);
      return step ? [`${step[1]}:${step[2]}  ${step[3]}`] : [];
    });
  });
}

/** The run that finds the fault without this guard, or, with `invariant`, that looks for another fault. */
export function runWithout({ small: [usual] }: Model, guard: Guard, invariant = guard.breaks): Run {
  return { bounds: guard.bounds ?? usual, off: guard.name, offToo: guard.behind, invariant };
}

/** The guards that are off when this one is checked. */
export function turnedOff({ name, behind }: Guard): readonly string[] {
  return behind ? [name, behind] : [name];
}

/** The values of a model's macros. Its file numbers invariants and guards from 1, and 0 is none of them. */
function settingsOf({ invariants, guards }: Model, { bounds, off, offToo, invariant }: Run): Bounds {
  const numberOf = (names: readonly string[], name = '') => names.indexOf(name) + 1;
  const names = guards.map((guard) => guard.name);
  return {
    ...bounds,
    OFF: numberOf(names, off),
    OFF_TOO: numberOf(names, offToo),
    INVARIANT: numberOf(invariants, invariant),
  };
}

/** C that takes each setting from the environment, before the checker starts. Without one of them it stops. */
function settingsHeader(names: readonly string[]): string {
  return [
    '#include <stdlib.h>',
    ...names.map((name) => `static int setting_${name};`),
    'static int setting(const char *name) { char *value = getenv(name); if (!value) abort(); return atoi(value); }',
    '__attribute__((constructor)) static void readSettings(void) {',
    ...names.map((name) => `  setting_${name} = setting("${name}");`),
    '}\n',
  ].join('\n');
}

/** Makes the checker of a model: Spin writes it in C. */
async function build(folder: string, macros: readonly string[], flags: readonly string[]): Promise<void> {
  await run('spin', [...macros, '-a', 'model.pml'], { cwd: folder, ...OUTPUT });
  await run('cc', ['-w', '-DSAFETY', ...flags, '-o', 'pan', 'pan.c'], { cwd: folder, ...OUTPUT });
}

const copyModel = ({ name }: Model, folder: string): Promise<void> =>
  copyFile(join('docs/model', `${name}.pml`), join(folder, 'model.pml'));
