import { existsSync } from 'node:fs';
import { printable } from '../pay/printable.ts';

/** The command was not written as the usage says: exit code 2. */
export class UsageError extends Error {}

/** To a person; standard output holds nothing but the answer. */
export const say = (line: string): void => console.error(line);

/**
 * Runs an operator's command with the environment that the service has, and sets the exit code: what `main` returns, 1 with one line on
 * standard error for a failure, 2 with the usage for a command that was not understood.
 */
export async function runOperatorCommand(usage: string, main: () => number | Promise<number>): Promise<void> {
  // Whoever reads our output may have seen enough, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
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
