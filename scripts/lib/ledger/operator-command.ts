import { existsSync } from 'node:fs';
import { printable } from '../../../cli/printable.ts';

/** The arguments do not match the usage: exit code 2. */
export class UsageError extends Error {}

/** Prints to standard error. Standard output holds only the answer. */
export const say = (line: string): void => console.error(line);

/**
 * Runs an operator's command with the service's environment, and makes every file for its user alone. Sets the exit
 * code that `main` returns. A failure sets 1, with one line on standard error. A usage error sets 2, with the usage.
 */
export async function runOperatorCommand(usage: string, main: () => number | Promise<number>): Promise<void> {
  // The reader of our output, such as `head`, may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  process.umask(0o077);
  try {
    if (existsSync('.env')) process.loadEnvFile('.env');
    process.exitCode = await main();
  } catch (error) {
    const wrong = error instanceof UsageError;
    say(`${wrong ? 'usage' : 'failed'}: ${printable(error instanceof Error ? error.message : String(error))}`);
    if (wrong) say(`\n${usage}`);
    process.exitCode = wrong ? 2 : 1;
  }
}
