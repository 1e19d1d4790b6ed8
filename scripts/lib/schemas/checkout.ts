import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

/** Whether git's history here holds a commit. A shallow clone lacks the earlier ones. */
export const hasCommit = (commit: string): boolean =>
  spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).status === 0;

/** Writes a commit's source into a folder below `work`, with today's dependencies, and returns the folder. Throws when history lacks the commit. */
export function checkout(commit: string, work: string): string {
  const folder = join(work, commit);
  if (existsSync(folder)) return folder;
  const files = execFileSync('git', ['archive', commit, 'src', 'package.json'], { cwd: ROOT, maxBuffer: 1 << 28 });
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-x', '-C', folder], { input: files });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}
