import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from '../lib/build/build.ts';
import { startCommand } from '../lib/build/start-command.ts';
import { childrenOf } from '../lib/child-processes.ts';

/** Ticks of /proc a second: Linux's USER_HZ. */
const TICKS_PER_SECOND = 100;

/** Options that a benchmark does not take. The message says which it takes. */
export class Usage extends Error {}

/** A server under measurement, in its own process. */
export interface Subject {
  readonly origin: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts a server file with an environment and Node's options, and waits until `path` answers with any status. */
export async function startSubject(
  file: string,
  port: number,
  path: string,
  env: Record<string, string>,
  options: readonly string[] = [],
): Promise<Subject> {
  const origin = `http://127.0.0.1:${port}`;
  const given = { PATH: process.env.PATH, NODE_ENV: 'development', PORT: String(port), ...env };
  const child: ChildProcess = spawn(process.execPath, [...options, file], {
    env: given,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`${file} ended with ${child.exitCode}`);
    const answer = await fetch(origin + path).catch(() => null);
    if (answer) return { origin, pid: child.pid ?? 0, stop: () => stop(child) };
    await delay(50);
  }
  throw new Error(`${file} did not answer in 30 s`);
}

/** Starts the service as `npm start` does: built, and with the same variable of glibc and options of Node. */
export async function startService(port: number, path: string, env: Record<string, string>): Promise<Subject> {
  await build(process.cwd());
  return startBuilt('.', port, path, env);
}

/** The same for a checkout that is built. */
export function startBuilt(folder: string, port: number, path: string, env: Record<string, string>): Promise<Subject> {
  const { variable, options, program } = startCommand();
  const [name = '', value = ''] = variable.split('=');
  return startSubject(join(folder, program), port, path, { [name]: value, ...env }, options);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}

/** The value below which `share` of the samples lie. The samples need not be sorted. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5);

/** User and system time of a process, in milliseconds, from Linux's /proc. */
export function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}

/** User and system time of a process and its children, in milliseconds. */
export const cpuMsOfAll = (pid: number): number =>
  [pid, ...childrenOf(pid)].reduce((sum, one) => sum + cpuMsOf(one), 0);
