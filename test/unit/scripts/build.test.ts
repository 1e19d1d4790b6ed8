import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { build } from '../../../scripts/lib/build/build.ts';

const run = promisify(execFile);

/** A service of six modules, which prints what a build could break. */
const SOURCES = {
  'package-lock.json': '{}',
  'package.json': '{ "type": "module" }',
  'src/server.ts': `
    import { readFileSync } from 'node:fs';
    import { join } from 'node:path';
    import { Problem } from './problem.ts';
    import { Problem as Other } from './other.ts';
    import { createReader } from './upstream/web/page-reader.ts';
    const beside = readFileSync(join(import.meta.dirname, 'beside.txt'), 'utf8');
    const above = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8');
    const { network }: { network: string } = await import('../dev/network.ts');
    const page = await createReader();
    const words = ['it’s', \`café \${page.length}’\`, '’'.replace(/[’“]/u, '🙂')];
    console.log(JSON.stringify({ beside, above, network, page, words, names: [new Problem().name, new Other().name] }));`,
  'src/beside.txt': 'first',
  'src/problem.ts': 'export class Problem extends Error { constructor() { super(); this.name = new.target.name; } }',
  'src/other.ts': `import * as first from './problem.ts'; export class Problem extends first.Problem {}`,
  'dev/network.ts': `export const network: string = import.meta.filename.slice(-14);`,
  'src/upstream/web/page-reader.ts': `
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    export const createReader = async () => (await once(new Worker(new URL('./page-worker.ts', import.meta.url)), 'message'))[0];`,
  'src/upstream/web/page-worker.ts': `
    import { parentPort } from 'node:worker_threads';
    parentPort?.postMessage(String(new Error().stack).includes('page-worker.js') ? 'built' : 'source');`,
};

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'percall build-'));
  for (const [file, text] of Object.entries(SOURCES)) write(file, text);
});
afterEach(() => rmSync(root, { recursive: true }));

function write(file: string, text: string): void {
  mkdirSync(join(root, dirname(file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

/** Makes a file or folder of dist two days old. */
function age(name: string): void {
  const twoDaysAgo = Date.now() / 1000 - 172_800;
  utimesSync(join(root, 'dist', name), twoDaysAgo, twoDaysAgo);
}

const printed = async () => (await run(process.execPath, [join(root, 'dist/server.js')])).stdout;
const builds = () => readdirSync(join(root, 'dist')).filter((name) => name !== 'server.js');

test('a build finds the files beside its sources, its thread and the embedded network, and keeps the names of errors', async () => {
  expect(await build(root)).toBe(true);
  expect(JSON.parse(await printed())).toEqual({
    beside: 'first',
    above: '{}',
    network: 'dev/network.ts',
    page: 'built',
    words: ['it’s', 'café 5’', '🙂'],
    names: ['Problem', 'Problem'],
  });
});

test('a build has no character beyond Latin-1, of which V8 keeps one byte each', async () => {
  await build(root);
  const [name = ''] = builds();
  const text = readFileSync(join(root, 'dist', name, 'server.js'), 'utf8');
  expect(text).toContain('caf\u00e9');
  expect(text).not.toMatch(/[\u0100-\uffff]/);
});

test('a build needs no embedded network, which the image does not have', async () => {
  rmSync(join(root, 'dev'), { recursive: true });
  expect(await build(root)).toBe(true);
  await expect(printed()).rejects.toThrow('dev/network.ts');
});

test('only changed sources are built again, and a service that runs keeps its files for a day', async () => {
  await build(root);
  const [first = ''] = builds();
  expect(await build(root)).toBe(false);
  write('dev/network.ts', 'export const network = "other";');
  expect(await build(root)).toBe(false);

  write('src/problem.ts', `${SOURCES['src/problem.ts']} console.log('second');`);
  expect(await build(root)).toBe(true);
  expect(await printed()).toMatch(/^second\n/);
  write('package-lock.json', '{ "packages": {} }');
  expect(await build(root)).toBe(true);
  expect(builds()).toHaveLength(3);

  for (const folder of builds()) age(folder);
  write('src/beside.json', '{}');
  expect(await build(root)).toBe(true);
  expect(builds()).toHaveLength(2);
  expect(builds()).not.toContain(first);
});

test.each([
  ['are gone', (folder: string) => rmSync(folder, { recursive: true })],
  ['are gone in part', (folder: string) => rmSync(join(folder, 'page-worker.js'))],
  ['lost their contents', (folder: string) => writeFileSync(join(folder, 'server.js'), '')],
])('a build whose files %s is made again', async (_, harm) => {
  await build(root);
  for (const folder of builds()) harm(join(root, 'dist', folder));
  expect(await build(root)).toBe(true);
  expect(JSON.parse(await printed())).toMatchObject({ beside: 'first' });
  expect(builds()).toHaveLength(1);
});

test('what a killed build left is deleted a day later, and what a build writes now is not', async () => {
  for (const draft of ['draft-old', 'draft-new']) mkdirSync(join(root, 'dist', draft), { recursive: true });
  age('draft-old');
  await build(root);
  expect(builds()).toContain('draft-new');
  expect(builds()).not.toContain('draft-old');
});

test('packages of another version than the lock file are not built', async () => {
  const lock = (version: string) => JSON.stringify({ packages: { 'node_modules/one': { version } } });
  write('package-lock.json', lock('1.0.1'));
  write('node_modules/.package-lock.json', lock('1.0.0'));
  await expect(build(root)).rejects.toThrow('node_modules/one is not of package-lock.json; run npm ci');
  write('node_modules/.package-lock.json', lock('1.0.1'));
  expect(await build(root)).toBe(true);
});

test('builds at the same time make one build', async () => {
  expect(await Promise.all([build(root), build(root), build(root)])).toEqual([true, true, true]);
  expect(builds()).toHaveLength(1);
  expect(JSON.parse(await printed())).toMatchObject({ beside: 'first' });
});

test('a build that fails says why, and leaves the build before as it was', async () => {
  await build(root);
  const before = builds();
  for (const [source, why] of [
    ["import './missing.ts';", 'missing.ts'],
    ["import 'not-installed';", 'not-installed'],
    ['console.log(import.meta.filename);', 'import.meta.filename'],
    ["console.log(/\\’/.test('’'));", 'a backslash before ’'],
  ] as const) {
    write('src/problem.ts', `${source} ${SOURCES['src/problem.ts']}`);
    await expect(build(root)).rejects.toThrow(why);
  }
  expect(builds()).toEqual(before);
  expect(JSON.parse(await printed())).toMatchObject({ beside: 'first' });
});
