import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { CHILD_ENV } from './child-env.ts';

const SCRIPTS = join(import.meta.dirname, '../../../scripts');

/** The result of an operator's command. */
export interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs an operator's command like a user, in a folder without a .env file. */
export function runCommand(
  script: 'ledger' | 'backup',
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<Run> {
  const given = { ...CHILD_ENV, ...env };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(SCRIPTS, `${script}.ts`), ...args],
      { cwd, env: given },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
  });
}
