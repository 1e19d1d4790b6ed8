import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { startCommand } from '../../../scripts/lib/build/start-command.ts';

// The image does not start through npm, so it repeats what keeps memory small: the options, and a variable of glibc.
test('the image starts the service by the command of npm start', () => {
  const image = readFileSync('Dockerfile', 'utf8');
  const { variable, options, program } = startCommand();
  expect(JSON.parse(/^CMD (\[.*\])$/m.exec(image)?.[1] ?? '[]')).toEqual(['node', ...options, program]);
  expect(/^ENV (.*)$/m.exec(image)?.[1]?.split(' ')).toContain(variable);
  expect(options).toContainEqual(expect.stringMatching(/^--max-semi-space-size=\d+$/));
});

// npm leaves out `prestart` where a user has set `ignore-scripts`, and would start the program before the upgrade.
test('npm start builds by itself', () => {
  expect(packageJson.scripts.start).toMatch(/^npm run -s build && /);
  expect(packageJson.scripts).not.toHaveProperty('prestart');
});

// A shell that stays between npm and the service would die of SIGTERM and leave the service running.
test('npm start leaves no shell between npm and the service', () => {
  expect(packageJson.scripts.start).toMatch(/ && exec env \S+ node [^&|;]+$/);
});

test('npm run demo leaves no shell between npm and the demo', () => {
  expect(packageJson.scripts.demo).toMatch(/^exec node [^&|;]+$/);
});

/** Runs npm over the project's package files alone, in this environment. It installs nothing. */
async function npm(args: readonly string[], env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-npm-'));
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc'])
      copyFileSync(join(import.meta.dirname, '../../..', name), join(folder, name));
    const given = { PATH: process.env.PATH, HOME: folder, ...env };
    return await promisify(execFile)('npm', [...args, '--dry-run', '--offline'], { cwd: folder, env: given });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// npm compares the engines of packages with the Node that it runs on. The project's programs run on the Node that it
// brings.
test('npm ci prints no warning of engines on an older Node', async () => {
  const older = "Object.defineProperty(process,'version',{value:'v20.19.0'})";
  const imported = `data:text/javascript,${encodeURIComponent(older)}`;
  const { stdout, stderr } = await npm(['ci'], { NODE_OPTIONS: `--import "${imported}"` });
  expect(stdout).toMatch(/^added \d+ packages/m);
  expect(stderr).toBe('');
});

// `npm start` builds, and runs on the Node that is a development package.
test('npm ci installs the same packages under NODE_ENV=production', async () => {
  const [plain, production] = await Promise.all([npm(['ci']), npm(['ci'], { NODE_ENV: 'production' })]);
  expect(added(production)).toContain('rolldown');
  expect(added(production)).toEqual(added(plain));
});

test('the image leaves out the development packages', async () => {
  const prune = /npm prune (.*)$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1] ?? '';
  const kept = added(await npm(['ci', ...prune.split(' ')]));
  expect(kept).toContain('fastify');
  for (const name of ['rolldown', 'node', 'vitest']) expect(kept).not.toContain(name);
});

/** The names of the packages that npm would add. */
function added({ stdout }: { stdout: string }): string[] {
  return [...stdout.matchAll(/^add (\S+) /gm)].map(([, name]) => name ?? '').sort();
}
