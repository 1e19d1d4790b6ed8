import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Outcome } from '../run/run-seed.ts';

/** What a process tells of a seed, one line each. */
export interface Played extends Outcome {
  readonly seed: string;
  readonly scenario: string;
  /** Where a promise broke and the moves were to be shortened: what is left of them, and a file with them to be played again. */
  readonly shortened?: readonly string[];
  readonly replay?: string;
}

interface PlayOptions {
  readonly seeds?: readonly number[];
  /** Files of moves to be played before the seeds. */
  readonly replay?: readonly string[];
  readonly moves?: number;
  /** The name of a planted fault; of several, each is planted alone, for the seed at its place. */
  readonly plant?: string | readonly string[];
  /** Ends with the first seed that breaks a promise. */
  readonly first?: boolean;
  /** Shortens the moves of seeds that break a promise, which takes minutes. */
  readonly shorten?: boolean;
  readonly onPlayed?: (reported: Played) => void;
}

const path = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const HOOKS = path('hooks.ts');
const MAIN = path('main.ts');
/** Half of what a process takes before its first seed is compiling. */
const NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'percall-compiled');
/** Young objects die in their seed: more room for them halves the time that collecting takes. */
const FLAGS = ['--max-semi-space-size=64', '--disable-warning=ExperimentalWarning'];

/** Plays seeds in a process of their own, because planted faults and virtual time go into its modules. Rejects when that one fails. */
export function playSeeds(options: PlayOptions): Promise<Played[]> {
  const { seeds = [], replay = [], moves = 200, plant, first = false, shorten = false, onPlayed } = options;
  const wanted = [
    ...(replay.length === 0 ? [] : ['--replay', replay.join(',')]),
    ...(seeds.length === 0 ? [] : ['--seeds', seeds.join(','), '--moves', String(moves)]),
    ...(plant === undefined ? [] : ['--plant', [plant].flat().join(',')]),
    ...(Array.isArray(plant) ? ['--each'] : []),
  ];
  const flags = [...(first ? ['--first'] : []), ...(shorten ? ['--shorten'] : [])];
  const child = spawn(process.execPath, [...FLAGS, '--import', HOOKS, MAIN, ...wanted, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE },
  });
  const reported: Played[] = [];
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const one = JSON.parse(line) as Played;
    reported.push(one);
    onPlayed?.(one);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(reported) : reject(new Error(`the simulation ended: ${complaint}`)),
    );
  });
}

/** The same in several processes at once; each takes every so-manieth seed. */
export async function playInParallel(
  options: PlayOptions & { readonly seeds: readonly number[] },
  processes: number,
): Promise<Played[]> {
  const parts = Array.from({ length: processes }, (_, at) =>
    options.seeds.filter((_seed, index) => index % processes === at),
  ).filter((seeds) => seeds.length > 0);
  const reported = await Promise.all(parts.map((seeds) => playSeeds({ ...options, seeds })));
  return reported.flat();
}

/** A broken promise as a person reads it, with what plays it again. */
export function tellBreach({ seed, scenario, breach, shortened = [], replay }: Played): string {
  if (!breach) return '';
  const what = replay === undefined ? `--seeds ${seed} --shorten` : `--replay ${replay}`;
  const again = `node --import ./test/simulation/hooks.ts test/simulation/main.ts ${what}`;
  return [
    `seed ${seed} (${scenario}) breaks "${breach.promise}": ${breach.detail}`,
    ...shortened,
    `play it again: ${again}`,
  ].join('\n  ');
}
