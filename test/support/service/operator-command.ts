import { execFile } from 'node:child_process';
import { CHILD_ENV } from './child-env.ts';
import { programFile } from './programs.ts';

/** The result of a command. */
export interface Run {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command of an operator or a buyer as a program of its own, in a folder without a .env file. */
export function runCommand(
  command: 'ledger' | 'backup' | 'pay',
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<Run> {
  const given = { ...CHILD_ENV, ...env };
  return new Promise((resolve) => {
    // The buyer's command is the first word of percall.
    const words = command === 'pay' ? [programFile('percall'), command, ...args] : [programFile(command), ...args];
    execFile(process.execPath, words, { cwd, env: given }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}
