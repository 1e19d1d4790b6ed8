import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';

// Programs that start children, and then are killed or end.

const MODULE = join(import.meta.dirname, '../../../dev/child.ts');
let program: ChildProcess | undefined;
afterEach(() => {
  program?.kill('SIGKILL');
});

/** Runs a program that starts children and prints the list of their process ids. */
async function run(lines: string, env: NodeJS.ProcessEnv = process.env): Promise<number[]> {
  const source = `import { startGuarded } from ${JSON.stringify(MODULE)};\nconst start = () => startGuarded('sleep', ['600']);\n${lines}`;
  const stdio: StdioOptions = ['ignore', 'pipe', 'inherit'];
  program = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio, env });
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

test('kill -9 of a program ends its children, also after one of them has ended by itself', async () => {
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

test('a process that the environment names in `pids` lives on', async () => {
  const bystander = spawn('sleep', ['600']);
  try {
    const lines = `const all = [await start()]; ${SAY} setInterval(() => {}, 1e6);`;
    const [child] = await run(lines, { ...process.env, pids: String(bystander.pid) });
    program?.kill('SIGKILL');
    await expect.poll(() => isRunning(child!)).toBe(false);
    expect(isRunning(bystander.pid!)).toBe(true);
  } finally {
    bystander.kill('SIGKILL');
  }
});

test('a program whose children have ended ends by itself', async () => {
  const source = `import { startGuarded } from ${JSON.stringify(MODULE)}; const child = await startGuarded('sleep', ['600']); await child.stop(); console.log(child.ended());`;
  program = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  expect(await text(program.stdout as NodeJS.ReadableStream)).toBe('killed by SIGTERM\n');
  if (program.exitCode === null) await once(program, 'exit');
  expect(program.exitCode).toBe(0);
});
