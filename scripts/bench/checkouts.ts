import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Postgres, startPostgres } from '../lib/ledger/postgres.ts';
import { median, type Subject, startBuilt, Usage } from './lib.ts';

/** A tree whose service is measured. */
export interface Checkout {
  readonly name: 'before' | 'after';
  readonly folder: string;
}

/** What the options of a benchmark ask for. */
export interface Comparison {
  /** This checkout alone, or another one and this. */
  readonly checkouts: readonly Checkout[];
  /** The server for ledgers; null where each is a SQLite file. */
  readonly postgres: Postgres | null;
}

/**
 * Reads `--before FOLDER` (another checkout with its dependencies, measured beside this one in the same run) and
 * `--ledger sqlite|postgres`. Throws for anything else.
 */
export async function readComparison(bench: string, words: readonly string[]): Promise<Comparison> {
  const usage = `usage: ${bench} [--before FOLDER] [--ledger sqlite|postgres]`;
  const { before, ledger = 'sqlite' } = parsed(words, usage);
  if (ledger !== 'sqlite' && ledger !== 'postgres') throw new Usage(usage);
  const after: Checkout = { name: 'after', folder: process.cwd() };
  return {
    checkouts: before === undefined ? [after] : [{ name: 'before', folder: resolve(before) }, after],
    postgres: ledger === 'postgres' ? await startPostgres() : null,
  };
}

function parsed(words: readonly string[], usage: string) {
  try {
    return parseArgs({ args: [...words], options: { before: { type: 'string' }, ledger: { type: 'string' } } }).values;
  } catch {
    throw new Usage(usage);
  }
}

/** Runs work for each, and lets each go first in turn. */
export async function inTurns<T>(all: readonly T[], round: number, work: (one: T) => Promise<void>): Promise<void> {
  for (const one of round % 2 === 0 ? all : [...all].reverse()) await work(one);
}

/** Builds a checkout's service and starts it as `npm start` does. */
export async function startCheckout(
  folder: string,
  port: number,
  path: string,
  env: Record<string, string>,
): Promise<Subject> {
  const built = spawnSync('npm', ['run', '-s', 'build'], { cwd: folder, stdio: 'inherit' });
  if (built.status !== 0) throw new Error(`${folder} cannot be built`);
  return startBuilt(folder, port, path, env);
}

/** The median of the rounds' ratios, after to before; `none` where nothing was spent. Both have one figure a round. */
export function ratio(before: readonly number[], after: readonly number[]): string {
  const middle = median(after.map((one, at) => one / (before[at] ?? Number.NaN)));
  return Number.isNaN(middle) ? 'none' : middle.toFixed(3);
}
