import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type LockFile, nameAt } from './lock-file.ts';

/**
 * The packages for which npm runs, or would run, code at install, each name once: those that the lock file marks, and those with a `binding.gyp`, for
 * which npm 11 compiles although the lock file says nothing. `root` is the folder that holds node_modules; a package that is not installed there is
 * judged by the lock file alone.
 */
export function installScripts(lock: LockFile, root: string): string[] {
  const found = Object.entries(lock.packages).filter(([path, { hasInstallScript }]) => {
    return path !== '' && (hasInstallScript === true || existsSync(join(root, path, 'binding.gyp')));
  });
  return [...new Set(found.map(([path]) => nameAt(path)))].sort();
}
