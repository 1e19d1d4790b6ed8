import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { type Edit, PARTS, type Part } from './lib/deletions/parts.ts';

const USAGE = `npm run trial:deletions -- [--types] [--keep] [PART...]
Deletes a part from a copy of the tree, with the few lines that name it, and shows that the rest compiles and passes its tests.
Parts: ${PARTS.map(({ name }) => name).join(', ')}; by default each of them, one after the other. scripts/lib/deletions/parts.ts lists what is deleted.
--types  checks the types alone
--keep   leaves the copies, and prints where they are
Exit code: 0 each trial passed, 1 one failed, 2 wrong usage.`;

const ROOT = resolve(import.meta.dirname, '..');
/** The tests that are run: of payments and their composition, of what the service answers, and each rail's promises. */
const TESTS = ['test/unit/payment', 'test/unit/wiring', 'test/http', 'test/ports/rail'];
const COMPILED = ['src', 'cli', 'dev', 'scripts', ...TESTS];
/** They measure or record every part, as the other tests do. */
const NOT_COMPILED = ['scripts/bench', 'scripts/clients*', 'scripts/lib/schemas', 'scripts/schemas.ts'];
const TSC = ['node_modules/typescript-7/bin/tsc', '--noEmit', '--checkers', '2', '-p', 'tsconfig.trial.json'];
const VITEST = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot', '--maxWorkers=2', ...TESTS];
/** Lines of a failure that are printed. */
const MOST_LINES = 200;

const { values, positionals } = readOptions();
if (values.help) console.log(USAGE);
else for (const part of PARTS) if (positionals.length === 0 || positionals.includes(part.name)) await tryWithout(part);

function readOptions() {
  const options = { types: { type: 'boolean' }, keep: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const read = parseArgs({ options, allowPositionals: true });
    const unknown = read.positionals.find((name) => !PARTS.some((part) => part.name === name));
    if (unknown === undefined) return read;
    console.error(`no part is named ${unknown}\n\n${USAGE}`);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
  }
  process.exit(2);
}

async function tryWithout(part: Part): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), `without-${part.name}-`));
  try {
    copyTree(folder);
    const [own, tests] = [deleteAll(folder, part.files), deleteAll(folder, part.tests)];
    for (const [path, title] of part.testCases) change(folder, path, (source) => withoutTest(source, title));
    for (const [path, from, to] of [...part.edits, ...part.testEdits])
      change(folder, path, (source) => replaceOnce(source, from, to));
    console.log(`Without ${part.name}:`);
    console.log(`  deleted: ${countText(own)}; of its tests and scripts ${countText(tests)}`);
    console.log(`  changed: ${editText(part.edits)}`);
    console.log(`  in tests of others: ${part.testCases.length} cases dropped, ${editText(part.testEdits)} changed`);
    const compiles = await check(folder, 'types', TSC);
    if (compiles && !values.types) await check(folder, 'tests', VITEST);
  } catch (error) {
    fail(`${part.name}: ${(error as Error).message}`);
  } finally {
    if (values.keep) console.log(`  kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

/** The files that git knows, as they are now. */
function copyTree(folder: string): void {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of listed.split('\0'))
    if (path !== '' && existsSync(join(ROOT, path))) cpSync(join(ROOT, path), join(folder, path));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const config = { extends: './tsconfig.json', include: COMPILED, exclude: NOT_COMPILED };
  writeFileSync(join(folder, 'tsconfig.trial.json'), JSON.stringify(config));
}

interface Count {
  readonly files: number;
  readonly lines: number;
}

/** Throws for a path that is not there: the table is out of date. */
function deleteAll(folder: string, paths: readonly string[]): Count {
  let [files, lines] = [0, 0];
  for (const path of paths.map((one) => join(folder, one))) {
    for (const file of lstatSync(path).isDirectory() ? filesIn(path) : [path]) {
      files += 1;
      lines += readFileSync(file, 'utf8').split('\n').length - 1;
    }
    rmSync(path, { recursive: true });
  }
  return { files, lines };
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** Throws where the text to change is not there as the table says. */
function change(folder: string, path: string, edit: (source: string) => string): void {
  const file = join(folder, path);
  try {
    writeFileSync(file, edit(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  }
}

function replaceOnce(source: string, from: string, to: string): string {
  const [before, after, ...more] = source.split(from);
  if (after === undefined) throw new Error(`this text is nowhere: ${from}`);
  if (more.length > 0) throw new Error(`this text is there more than once: ${from}`);
  return `${before}${to}${after}`;
}

/** Without a test or a function: from the line that begins it to the line that ends it, which has the same indent. */
function withoutTest(source: string, title: string): string {
  const lines = source.split('\n');
  const at = lines.findIndex((line) => line.includes(title));
  const start = lines.findLastIndex(
    (line, index) => index <= at && /^ *(test|it|describe|function|export async function)\b/.test(line),
  );
  const indent = /^ */.exec(lines[start] ?? '')?.[0] ?? '';
  const end = lines.findIndex(
    (line, index) => index > at && /^[)}\]]+;?$/.test(line.slice(indent.length)) && line.startsWith(indent),
  );
  if (at < 0 || start < 0 || end < 0) throw new Error(`no test is named ${title}`);
  return lines.toSpliced(start, end - start + 1).join('\n');
}

async function check(folder: string, name: string, args: readonly string[]): Promise<boolean> {
  const startedMs = performance.now();
  const env = { ...process.env, GOGC: '400' };
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((done) => child.once('close', done));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  if (code === 0) {
    console.log(`  ${name}: passed in ${seconds} s${/^ *Tests .*$/m.exec(plain(out))?.[0].replace(/ +/g, ' ') ?? ''}`);
    return true;
  }
  fail(
    `  ${name}: FAILED in ${seconds} s\n${plain(out + err)
      .split('\n')
      .slice(-MOST_LINES)
      .join('\n')}`,
  );
  return false;
}

/** Without the codes of colours. */
function plain(said: string): string {
  return stripVTControlCharacters(said);
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

function countText({ files, lines }: Count): string {
  return `${files} files (${lines} lines)`;
}

/** A line that is replaced counts once. */
function editText(edits: readonly Edit[]): string {
  const linesOf = (given: string) => (given === '' ? 0 : given.replace(/\n$/, '').split('\n').length);
  const lines = edits.reduce((sum, [, from, to]) => sum + Math.max(linesOf(from), linesOf(to)), 0);
  return `${lines} lines in ${new Set(edits.map(([file]) => file)).size} files`;
}
