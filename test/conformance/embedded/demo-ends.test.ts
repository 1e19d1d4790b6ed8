import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { childrenOf } from '../../../scripts/lib/child-processes.ts';
import { CHILD_ENV } from '../../support/service/child-env.ts';
import { ROOT } from '../../support/service/shown-code.ts';
import { isAlive } from '../../support/service/workers.ts';

// `npm run demo` as a reader starts it. It is ended from outside, in each way in which that may happen.

let folder: string;
let npm: ChildProcess;
let started: number[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-demo-'));
  started = [];
});
afterEach(() => {
  for (const pid of started.filter(isAlive)) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** A process and all below it. */
const familyOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(familyOf)];

const commandLine = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');

/** Starts the demo, and returns when its service is ready: then all its processes run. */
async function startDemo(): Promise<void> {
  const env = { ...CHILD_ENV, HOME: process.env.HOME, TMPDIR: folder };
  const child = spawn('npm', ['run', 'demo', '--', '--port', '0'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  npm = child;
  let output = '';
  await new Promise<void>((ready, ended) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      if (output.includes('ready at http://')) ready();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', ended);
    child.once('exit', (code) => ended(new Error(`the demo ended with ${code}:\n${output}`)));
  });
  started = familyOf(Number(npm.pid));
}

const demoProcess = (): number => {
  const [found] = started.filter((pid) => /^\S*node scripts\/demo\.ts/.test(commandLine(pid)));
  if (found === undefined) throw new Error(`no demo among ${started.map(commandLine).join('; ')}`);
  return found;
};

const WAYS: readonly (readonly [string, NodeJS.Signals, () => number])[] = [
  ['kill -9 of npm', 'SIGKILL', () => Number(npm.pid)],
  ['SIGTERM to npm', 'SIGTERM', () => Number(npm.pid)],
  ['SIGHUP to npm', 'SIGHUP', () => Number(npm.pid)],
  ['SIGTERM to the demo', 'SIGTERM', demoProcess],
  ['kill -9 of the demo', 'SIGKILL', demoProcess],
];

test.skipIf(process.platform !== 'linux').each(process.env.SLOW ? WAYS : WAYS.slice(0, 2))(
  '%s leaves no process of the demo',
  async (_way, signal, target) => {
    await startDemo();
    // npm, the demo, the chain, the service, and the shell that watches the last two.
    expect(started.length).toBeGreaterThanOrEqual(5);
    process.kill(target(), signal);
    await expect.poll(() => started.filter(isAlive)).toEqual([]);
  },
);
