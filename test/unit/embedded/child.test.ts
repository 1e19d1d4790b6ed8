import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';

// A program that starts children and is killed itself.

const MODULE = join(import.meta.dirname, '../../../src/embedded/child.ts');
let program: ChildProcess | undefined;
afterEach(() => {
  program?.kill('SIGKILL');
});

/** Runs a program that starts children and prints the list of their process ids. */
async function run(lines: string): Promise<number[]> {
  const source = `import { startGuarded } from ${JSON.stringify(MODULE)};\nconst start = () => startGuarded('sleep', ['600']);\n${lines}`;
  program = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(program.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return JSON.parse(chunk.toString('utf8')) as number[];
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const SAY = 'console.log(JSON.stringify(all.map(({ pid }) => pid)));';

test('every child dies with a program that is killed with -9, also where others have ended before', async () => {
  const pids = await run(
    `const all = [await start(), await start(), await start()]; await all[1].stop(); ${SAY} setInterval(() => {}, 1e6);`,
  );
  expect(pids.map(isRunning)).toEqual([true, false, true]);
  program?.kill('SIGKILL');
  await expect.poll(() => pids.map(isRunning)).toEqual([false, false, false]);
});

test.runIf(process.platform === 'linux')(
  'a child whose watchdog was killed is watched again as soon as another child starts',
  async () => {
    const pids = await run(`
    import { readFileSync } from 'node:fs';
    const all = [await start()];
    const children = () => readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').match(/\\d+/g);
    const shells = () => children().filter((pid) => readFileSync('/proc/' + pid + '/comm', 'utf8') === 'sh\\n');
    const [shell] = shells();
    process.kill(Number(shell), 'SIGKILL');
    while (shells().length > 0) await new Promise((next) => setImmediate(next));
    all.push(await start());
    ${SAY} setInterval(() => {}, 1e6);`);
    program?.kill('SIGKILL');
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false]);
  },
);

test('a program whose children have ended ends by itself', async () => {
  const source = `import { startGuarded } from ${JSON.stringify(MODULE)}; const child = await startGuarded('sleep', ['600']); await child.stop(); console.log(child.ended());`;
  program = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await text(program.stdout as NodeJS.ReadableStream)).toBe('killed by SIGTERM\n');
  if (program.exitCode === null) await once(program, 'exit');
  expect(program.exitCode).toBe(0);
});
