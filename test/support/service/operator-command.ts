import { execFile } from 'node:child_process';
import { join } from 'node:path';

const SCRIPTS = join(import.meta.dirname, '../../../scripts');

/** How one of the operator's commands ended. */
export interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs one of the operator's commands as he does, in a folder away from any .env file. */
export function runCommand(
  script: 'ledger' | 'backup',
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<Run> {
  const given = { PATH: process.env.PATH, ...env };
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
