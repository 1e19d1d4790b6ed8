import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** What the command line says is wrong; its message is one line for the person who typed it. */
export class UsageError extends Error {}

/** The values of a command line without positional arguments. Throws a UsageError for whatever is not among `options`. */
export function readArguments<O extends ParseArgsOptionsConfig>(args: readonly string[], options: O) {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    // Node goes on with advice for positional arguments, which there are none of.
    const [said = ''] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/);
    throw new UsageError(said);
  }
}

/** A whole number of at least `least`. Throws a UsageError that names the option. */
export function wholeNumber(option: string, text: string, least: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least)) throw new UsageError(`--${option} takes a whole number from ${least} on, not "${text}"`);
  return value;
}

/** The seeds of `17`, `1-300` or `3,7,9-12`, in that order. Throws a UsageError for anything else, and for more than a million. */
export function seedsOf(text: string): number[] {
  const parts = text.split(',').map((part) => {
    const [, first, last = first] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === undefined || to < from || to - from >= 1_000_000)
      throw new UsageError(`--seeds takes numbers and ranges, such as 3,7,9-12, not "${text}"`);
    return { from, to };
  });
  return parts.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at));
}

/**
 * Reads a program's command line with `read`. `--help` prints the usage and ends the program with 0; a UsageError ends it with one line and 2.
 */
export function argumentsOr<T>(usage: string, read: (args: readonly string[]) => T): T {
  const args = process.argv.slice(2);
  try {
    if (!args.includes('--help')) return read(args);
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}; --help tells what there is\n`);
    process.exit(2);
  }
}
