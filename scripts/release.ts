import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { moveUnreleased } from './lib/release/changelog.ts';
import { refusalsOf } from './lib/release/refusals.ts';

// `npm run release -- 1.0.0`: makes a release of the checked-out main branch, as a commit and a tag. It pushes nothing. docs/releasing.md is the checklist
// around it. --dry-run looks whether the release could be made, prints the steps and changes nothing.

const USAGE = 'usage: npm run release -- <version> [--dry-run]';
const { values, positionals } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [wanted, ...rest] = positionals;

interface Step {
  readonly says: string;
  run(): void;
}

const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
/** The tests that need a program of Debian's may be skipped elsewhere. A release skips none. */
const WHOLE = { REQUIRE_BROWSER: '1', REQUIRE_POSTGRES: '1', REQUIRE_SPIN: '1', REQUIRE_CC: '1' };
const npm = (...args: string[]): void =>
  void execFileSync('npm', args, { stdio: 'inherit', env: { ...process.env, ...WHOLE } });
const script = (name: string, ...args: string[]): void => npm('run', '--silent', name, '--', ...args);

if (wanted === undefined || rest.length > 0) {
  console.error(USAGE);
  process.exitCode = 1;
} else {
  const refusals = refusalsOf(wanted, workingCopy());
  for (const why of refusals) console.error(`refused: ${why}`);
  if (refusals.length > 0) process.exitCode = 1;
  else release(wanted, values['dry-run']);
}

function workingCopy() {
  return {
    branch: git('branch', '--show-current'),
    changes: git('status', '--porcelain').split('\n').filter(Boolean),
    tags: git('tag', '--list').split('\n'),
    version: (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version,
    changelog: readFileSync('CHANGELOG.md', 'utf8'),
  };
}

/** Checks, then changes files, then commits. When a step fails after the first change, the files are as they were. */
function release(version: string, dry: boolean): void {
  const checks = checksOf();
  const changes = changesOf(version);
  if (dry) {
    for (const { says } of [...checks, ...changes]) console.log(`would ${says}`);
    return;
  }
  for (const one of checks) run(one);
  const [before, dirty] = [git('rev-parse', 'HEAD'), git('status', '--porcelain')];
  if (dirty !== '') throw new Error(`the checks have changed files: ${dirty}`);
  try {
    for (const one of changes) run(one);
  } catch (error) {
    // The copy was clean before the first step, so this takes back nothing but the steps' own changes.
    git('reset', '--hard', before);
    throw error;
  }
  console.log(`v${version} is made. Publish it with: git push origin main v${version}`);
}

function run({ says, run }: Step): void {
  console.log(`- ${says}`);
  run();
}

function checksOf(): Step[] {
  return [
    { says: 'run npm run check', run: () => script('check') },
    { says: 'run npm test', run: () => npm('test', '--silent') },
    { says: 'run npm run signatures', run: () => script('signatures') },
  ];
}

function changesOf(version: string): Step[] {
  const day = new Date().toISOString().slice(0, 10);
  const changelog = () => moveUnreleased(readFileSync('CHANGELOG.md', 'utf8'), version, day);
  return [
    {
      says: `set the version ${version} in package.json and package-lock.json`,
      run: () => npm('version', version, '--no-git-tag-version', '--silent'),
    },
    {
      says: `move what is unreleased in CHANGELOG.md under ${version} of ${day}`,
      run: () => writeFileSync('CHANGELOG.md', changelog()),
    },
    // The interface's version stays: it is the interface document's, and not the package's.
    { says: 'write openapi/openapi.json', run: () => script('openapi') },
    { says: 'record the shapes of all answers as released', run: () => script('shapes', 'HEAD') },
    { says: 'write docs/licences.md', run: () => script('licences') },
    { says: 'write docs/sbom.cdx.json', run: () => script('sbom') },
    { says: `commit "release: ${version}"`, run: () => void git('commit', '--all', '-m', `release: ${version}`) },
    { says: `tag the commit v${version}`, run: () => void git('tag', '-a', `v${version}`, '-m', `percall ${version}`) },
  ];
}
