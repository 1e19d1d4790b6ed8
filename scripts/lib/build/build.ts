import { createHash, randomUUID } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from './bundle.ts';

/** What a build depends on. */
const SOURCES = ['src/**/*.{ts,json}', 'scripts/lib/build/*.ts', 'package-lock.json'];
const FOLDER = /^[0-9a-f]{16}$/;

/**
 * Builds the service of the project at `root`: `dist/server.js`, which loads the files of a folder beside it. True when there was something to build.
 * A folder is named after its sources and is never changed. So several starts may build at once, and a service that runs keeps its own files.
 * Throws when the development dependencies are not installed.
 */
export async function build(root: string): Promise<boolean> {
  const dist = join(root, 'dist');
  const name = fingerprint(root);
  const program = join(dist, 'server.js');
  const before = existsSync(program) ? /[0-9a-f]{16}/.exec(readFileSync(program, 'utf8'))?.[0] : undefined;
  if (before === name) return false;
  // As deep as the folder that it becomes, because the files name their sources by relative paths.
  const draft = join(dist, `draft-${randomUUID()}`);
  mkdirSync(draft, { recursive: true });
  try {
    await bundle(root, draft);
    keepOne(draft, join(dist, name));
    writeFileSync(`${draft}.js`, `import './${name}/server.js';\n`);
    renameSync(`${draft}.js`, program);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  for (const old of readdirSync(dist)) {
    if (FOLDER.test(old) && old !== name && old !== before) rmSync(join(dist, old), { recursive: true, force: true });
  }
  return true;
}

/** Gives a folder its name, unless a build at the same time was first. */
function keepOne(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

/** Identifies the contents of the sources: 16 hex characters. */
function fingerprint(root: string): string {
  const hash = createHash('sha256');
  for (const file of globSync(SOURCES, { cwd: root, exclude: ['src/embedded/**'] }).sort()) {
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex').slice(0, 16);
}
