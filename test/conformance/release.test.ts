import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answerShapes } from '../../scripts/lib/answer-shapes.ts';
import { moveUnreleased } from '../../scripts/lib/release/changelog.ts';
import { refusalsOf } from '../../scripts/lib/release/refusals.ts';
import { CHILD_ENV } from '../support/service/child-env.ts';

const ROOT = join(import.meta.dirname, '../..');
const PARTS = ['scripts', 'src', 'openapi', 'docs', 'package.json', 'package-lock.json', 'CHANGELOG.md', '.gitignore'];
const SHAPES = 'test/conformance/docs/released-shapes.json';

/** A repository with this one's files on `main`, whose own checks are quick: `npm run check` fails while a file `red` is committed. */
function createCopy() {
  const folder = mkdtempSync(join(tmpdir(), 'percall-release-'));
  for (const part of [...PARTS, SHAPES]) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const write = (path: string, text: string): void => writeFileSync(join(folder, path), text);
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const manifest = JSON.parse(read('package.json'));
  const red = "node -e \"process.exit(require('node:fs').existsSync('red') ? 1 : 0)\"";
  Object.assign(manifest.scripts, { check: red, test: 'node -e ""', signatures: 'node -e ""' });
  write('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
  write(
    'CHANGELOG.md',
    '# Changelog\n\n## [Unreleased]\n### Added\n- A thing.\n\n## [0.1.0] - 2026-01-01\n- The first.\n',
  );
  write('.gitignore', 'node_modules\n');
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'A tester');
  git('config', 'user.email', 'tester@example.com');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'start');
  const first = git('rev-parse', 'HEAD');
  return {
    read,
    write,
    git,
    commit: (path: string, text: string) => {
      write(path, text);
      git('add', '--all');
      git('commit', '--quiet', '--message', `change ${path}`);
    },
    release: (...args: string[]) => {
      // Without the cache of compiled packages each run takes a second more.
      const env = { ...CHILD_ENV, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
      const script = join(folder, 'scripts/release.ts');
      const run = spawnSync(process.execPath, [script, ...args], { cwd: folder, encoding: 'utf8', env });
      return { code: run.status, out: run.stdout, error: run.stderr };
    },
    /** Everything that a release that is not made must leave alone. */
    state: () => [git('rev-parse', 'HEAD'), git('tag', '--list'), git('status', '--porcelain')],
    /** Takes back what was done since the start: commits, tags, branches and files. */
    reset: () => {
      git('checkout', '--quiet', '--force', '-B', 'main', first);
      git('clean', '--quiet', '--force', '-d');
      for (const tag of git('tag', '--list').split('\n')) if (tag) git('tag', '--delete', tag);
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}

describe('a release', () => {
  // One copy for all tests: to write it and to commit it takes two seconds.
  let copy: ReturnType<typeof createCopy>;
  beforeAll(() => {
    copy = createCopy();
  });
  afterEach(() => copy.reset());
  afterAll(() => copy.remove());

  test('is a commit and a tag with its version, its changelog, its shapes and the list of what ships', () => {
    const before = JSON.parse(copy.read('openapi/openapi.json'));
    expect(copy.release('1.0.0')).toMatchObject({
      code: 0,
      out: expect.stringContaining('git push origin main v1.0.0'),
    });
    expect(copy.git('log', '-1', '--format=%s')).toBe('release: 1.0.0');
    expect(copy.git('rev-parse', 'v1.0.0^{commit}')).toBe(copy.git('rev-parse', 'HEAD'));
    expect(copy.git('cat-file', '-t', 'v1.0.0')).toBe('tag');
    expect(copy.git('status', '--porcelain')).toBe('');
    const lock = JSON.parse(copy.read('package-lock.json'));
    expect([JSON.parse(copy.read('package.json')).version, lock.version, lock.packages[''].version]).toEqual([
      '1.0.0',
      '1.0.0',
      '1.0.0',
    ]);
    expect(copy.read('CHANGELOG.md')).toMatch(
      /^# Changelog\n\n## \[Unreleased\]\n\n## \[1\.0\.0\] - \d{4}-\d\d-\d\d\n### Added\n- A thing\.\n\n## \[0\.1\.0\]/,
    );
    expect(JSON.parse(copy.read('docs/sbom.cdx.json')).metadata.component).toMatchObject({ version: '1.0.0' });
    const now = JSON.parse(copy.read('openapi/openapi.json'));
    expect(now.info.version).toBe(before.info.version);
    expect(JSON.parse(copy.read(SHAPES))).toEqual(answerShapes(now));
  });

  // The next test shows the same of a step that comes later, so the quick lane has that one alone.
  test.runIf(process.env.SLOW)('is not made while a check is red, and nothing has changed', () => {
    copy.commit('red', '');
    const before = copy.state();
    expect(copy.release('1.0.0').code).toBe(1);
    expect(copy.state()).toEqual(before);
  });

  test('of which a step fails takes back the earlier ones', () => {
    const manifest = JSON.parse(copy.read('package.json'));
    copy.commit('package.json', JSON.stringify({ ...manifest, scripts: { ...manifest.scripts, openapi: 'exit 1' } }));
    const before = copy.state();
    expect(copy.release('1.0.0')).toMatchObject({
      code: 1,
      out: expect.stringContaining('write openapi/openapi.json'),
    });
    expect(copy.state()).toEqual(before);
  });

  test('is refused from a changed copy of another branch, and --dry-run prints the steps alone', () => {
    copy.git('checkout', '--quiet', '-b', 'other');
    copy.write('new.txt', '');
    const before = copy.state();
    const refused = copy.release('1.0.0');
    expect(refused).toMatchObject({ code: 1, error: expect.stringContaining('a release is made on main, and other') });
    expect(refused.error).toContain('not committed: ?? new.txt');
    expect(copy.state()).toEqual(before);
    rmSync(join(copy.git('rev-parse', '--show-toplevel'), 'new.txt'));
    copy.git('checkout', '--quiet', 'main');
    const clean = copy.state();
    const dry = copy.release('1.0.0', '--dry-run');
    expect(dry.code).toBe(0);
    expect(dry.out.match(/^would .+$/gm)?.map((line) => line.split(' ')[1])).toEqual([
      ...['run', 'run', 'run', 'set', 'move', 'write', 'record', 'write', 'write', 'commit', 'tag'],
    ]);
    expect(copy.state()).toEqual(clean);
  });
});

test.each([
  ['1.0', {}, '1.0 is no version: it needs three numbers, such as 1.0.0'],
  ['v1.0.0', {}, 'v1.0.0 is no version: it needs three numbers, such as 1.0.0'],
  ['0.1.0', {}, '0.1.0 is not above 0.1.0, the version in package.json'],
  ['0.0.9', {}, '0.0.9 is not above 0.1.0, the version in package.json'],
  ['1.0.0', { tags: ['v1.0.0'] }, 'the tag v1.0.0 exists'],
  ['1.0.0', { branch: '' }, 'a release is made on main, and no branch is checked out'],
  ['1.0.0', { changelog: '## [Unreleased]\n\n## [0.1.0]\n- A.\n' }, 'CHANGELOG.md has nothing under "Unreleased"'],
])('%s is refused with a reason: %j', (wanted, more, reason) => {
  const copy = { branch: 'main', changes: [], tags: [], version: '0.1.0', changelog: '## [Unreleased]\n- A.\n' };
  expect(refusalsOf('1.0.0', copy)).toEqual([]);
  expect(refusalsOf(wanted, { ...copy, ...more })).toEqual([reason]);
});

test('a changelog without the heading, or with nothing below it, is not taken for a release', () => {
  expect(() => moveUnreleased('# Changelog\n', '1.0.0', '2026-12-01')).toThrow('no heading');
  expect(() => moveUnreleased('## [Unreleased]\n', '1.0.0', '2026-12-01')).toThrow('says nothing');
});
