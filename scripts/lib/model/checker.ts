import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
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
  readonly off?: readonly string[];
  /** The one invariant to check. All, if it is missing. */
  readonly invariant?: string;
}

/** Whether Spin and a C compiler are installed. */
export async function canCheck(): Promise<boolean> {
  const found = await Promise.allSettled([run('spin', ['-V']), run('cc', ['--version'])]);
  return found.every(({ status }) => status === 'fulfilled');
}

/**
 * Explores all states of a model within these bounds, or until an invariant fails. Rejects when Spin or the compiler fails, and when the bounds of memory
 * or depth end the run: then nothing is shown.
 */
export async function check(model: Model, wanted: Run): Promise<Checked> {
  return withModel(model, async (folder) => {
    const startedMs = performance.now();
    // Without a guard the fault is found among the first states, and an optimising compiler takes longer than that.
    const optimise = wanted.off?.length ? '-O0' : '-O1';
    await build(folder, defines(model, wanted), [optimise, '-DCOLLAPSE', `-DMEMLIM=${MOST_MEGABYTES}`]);
    const { stdout } = await run('./pan', ['-E', `-m${MOST_STEPS}`], { cwd: folder, ...OUTPUT });
    const isViolated = /assertion violated/.test(stdout);
    const states = Number(/([\d.e+]+) states, stored/.exec(stdout)?.[1] ?? Number.NaN);
    const megabytes = Number(/([\d.]+)\s+total actual memory usage/.exec(stdout)?.[1] ?? Number.NaN);
    if (/too small|out of memory|incomplete/.test(stdout) || Number.isNaN(states))
      throw new Error(`the run was cut off:\n${stdout}`);
    return { isViolated, states, megabytes, seconds: (performance.now() - startedMs) / 1000 };
  });
}

/** The shortest way to the fault without this guard, a line a step: the process, the line of the model, and its statement. */
export async function trace(model: Model, guard: Guard): Promise<readonly string[]> {
  return withModel(model, async (folder) => {
    const wanted = defines(model, runWithout(model, guard));
    await build(folder, wanted, ['-O1', '-DBFS']);
    await run('./pan', ['-E'], { cwd: folder, ...OUTPUT });
    const { stdout } = await run('spin', [...wanted, '-t', '-p', 'model.pml'], { cwd: folder, ...OUTPUT });
    return stdout.split('\n').flatMap((line) => {
      const step = /proc +\d+ \((\w+):\d+\) model\.pml:(\d+) .*?\[(.*)\]/.exec(line);
      return step ? [`${step[1]}:${step[2]}  ${step[3]}`] : [];
    });
  });
}

/** The run that finds the fault without this guard, or, with `invariant`, that looks for another fault. */
export function runWithout({ small: [usual] }: Model, guard: Guard, invariant = guard.breaks): Run {
  return { bounds: guard.bounds ?? usual, off: turnedOff(guard), invariant };
}

/** The guards that are off when this one is checked. */
export function turnedOff({ name, behind = [] }: Guard): readonly string[] {
  return [name, ...behind];
}

function defines(model: Model, { bounds, off = [], invariant }: Run): string[] {
  const number = invariant ? model.invariants.indexOf(invariant) + 1 : 0;
  const limits = Object.entries(bounds).map(([name, value]) => `-D${name}=${value}`);
  return [...limits, ...off.map((guard) => `-DNO_${guard}`), `-DINVARIANT=${number}`];
}

/** Makes the checker of a model: Spin writes it in C. */
async function build(folder: string, macros: readonly string[], flags: readonly string[]): Promise<void> {
  await run('spin', [...macros, '-a', 'model.pml'], { cwd: folder, ...OUTPUT });
  await run('cc', ['-w', '-DSAFETY', '-DVECTORSZ=2048', ...flags, '-o', 'pan', 'pan.c'], { cwd: folder, ...OUTPUT });
}

/** Does work in a folder that holds the model. */
function withModel<T>({ name }: Model, work: (folder: string) => Promise<T>): Promise<T> {
  return inOwnFolder(async (folder) => {
    await copyFile(join('docs/model', `${name}.pml`), join(folder, 'model.pml'));
    return work(folder);
  });
}
