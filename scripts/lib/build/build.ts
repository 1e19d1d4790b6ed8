import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { readLock } from '../supply/lock-file.ts';
import { bundle, type Programs } from './bundle.ts';

/** What is built together. */
export interface Product {
  /** The folder of the builds, below the project's. It holds nothing else. */
  readonly folder: string;
  /** What they depend on, as patterns of files. */
  readonly sources: readonly string[];
  readonly programs: Programs;
}

export const SERVICE: Product = {
  folder: 'dist',
  sources: ['src/**/*.{ts,json}', 'scripts/lib/build/*.ts', 'package-lock.json'],
  programs: { server: 'src/server.ts' },
};
/** The command `percall`, with the service's operator's tools. */
export const COMMAND: Product = {
  folder: 'dist/cli',
  sources: ['cli/**/*.ts', 'src/**/*.{ts,json}', 'scripts/**/*.ts', 'package.json', 'package-lock.json'],
  programs: { percall: 'cli/percall.ts' },
};
const FOLDER = /^[0-9a-f]{16}$/;
const DRAFT = /^draft-/;
/** Names the files of a whole build with their sizes. */
const FILES = 'files.json';
/** Services may still load files of a build for so long. No build takes so long, so an older draft is of one that was killed. */
const KEPT_MS = 86_400_000;

/**
 * Builds a product of the project at `root` (an absolute path), the service unless another is given: one file a program, such as `dist/server.js`, which loads
 * the files of a folder beside it. True when there was something to build. A folder is named after its sources and is never changed, so several starts may build at once. The build before and those of the last
 * day stay, because a service that runs may still load files of them. Throws when the development dependencies are not installed, when node_modules is not
 * of package-lock.json, and when `dist/` cannot be written.
 */
export async function build(root: string, { folder, sources, programs }: Product = SERVICE): Promise<boolean> {
  const dist = join(root, folder);
  const name = fingerprint(root, sources);
  const files = Object.keys(programs).map((program) => `${program}.js`);
  // The file that is written last: when it is of a build, the others are.
  const last = join(dist, files.at(-1) ?? '');
  const before = existsSync(last) ? /[0-9a-f]{16}/.exec(readFileSync(last, 'utf8'))?.[0] : undefined;
  if (before === name && isWhole(join(dist, name))) return false;
  checkInstalled(root);
  // As deep as the folder that it becomes, because the files name their sources by relative paths.
  const draft = draftIn(dist);
  mkdirSync(draft, { recursive: true });
  try {
    await bundle(root, draft, programs);
    writeFileSync(join(draft, FILES), JSON.stringify(sizesIn(draft)));
    keepOne(dist, draft, name);
    for (const file of files) {
      // The first line lets a shell run it.
      writeFileSync(`${draft}.js`, `#!/usr/bin/env node\nimport './${name}/${file}';\n`);
      renameSync(`${draft}.js`, join(dist, file));
    }
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  sweep(dist, [name, before]);
  return true;
}

const draftIn = (dist: string): string => join(dist, `draft-${randomUUID()}`);

/** Throws when an installed package has another version than package-lock.json: a build of it would pass for one of the lock file. */
function checkInstalled(root: string): void {
  const file = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(file)) return;
  const { packages: wanted } = readLock(join(root, 'package-lock.json'));
  for (const [path, { version }] of Object.entries(readLock(file).packages)) {
    if (wanted[path]?.version !== version)
      throw new Error(`${path} is not of package-lock.json; run npm ci --include=dev`);
  }
}

function sizesIn(folder: string): Record<string, number> {
  const names = readdirSync(folder).filter((name) => name !== FILES);
  return Object.fromEntries(names.map((name) => [name, statSync(join(folder, name)).size]));
}

/** A folder may have lost files or contents to a power cut or to a kill while it was deleted. */
function isWhole(folder: string): boolean {
  try {
    const sizes = JSON.parse(readFileSync(join(folder, FILES), 'utf8')) as Record<string, number>;
    return Object.entries(sizes).every(([name, size]) => statSync(join(folder, name)).size === size);
  } catch {
    return false;
  }
}

/** Gives a folder its name, unless a build at the same time was first. */
function keepOne(dist: string, draft: string, name: string): void {
  const folder = join(dist, name);
  if (existsSync(folder) && !isWhole(folder)) remove(dist, name);
  try {
    renameSync(draft, folder);
  } catch (error) {
    if (!isWhole(folder)) throw error;
  }
}

/** Deletes a folder under another name, so that a kill leaves no part of it under its own. */
function remove(dist: string, name: string): void {
  const gone = draftIn(dist);
  renameSync(join(dist, name), gone);
  rmSync(gone, { recursive: true, force: true });
}

/** Deletes what is older than a day: builds except these, and drafts of builds that were killed. */
function sweep(dist: string, kept: readonly (string | undefined)[]): void {
  for (const name of readdirSync(dist)) {
    const written = statSync(join(dist, name), { throwIfNoEntry: false });
    if (written === undefined || Date.now() - written.mtimeMs < KEPT_MS) continue;
    if ((FOLDER.test(name) && !kept.includes(name)) || DRAFT.test(name)) remove(dist, name);
  }
}

/** Identifies the contents of the sources: 16 hex characters. */
function fingerprint(root: string, sources: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of globSync([...sources], { cwd: root }).sort()) {
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 16);
}
