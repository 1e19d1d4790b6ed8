import { mkdir } from 'node:fs/promises';
import { type FloodOptions, readOptions, USAGE } from './flood/options.ts';
import { play } from './flood/play.ts';
import { machineOf, type Row, sumUp, tableOf } from './flood/report.ts';

/**
 * How an honest buyer fares beside floods, with the service's default limits and four providers of 2 requests a second: one line for each flood
 * and way to buy, each on a fresh chain. `words` are the options; `options.ts` tells them.
 */
export async function benchFlood(words: readonly string[]): Promise<void> {
  const options = understand(words);
  if (options === null) return;
  if (options.keepIn !== null) await mkdir(options.keepIn, { recursive: true });
  const rows: Row[] = [];
  for (const scenario of options.scenarios) {
    for (const line of scenario.lines) {
      const row = sumUp(await play(scenario, line, options));
      rows.push(row);
      console.error(`${row.flood}, ${row.buyer}: ${row.served} of ${row.calls} served`);
    }
  }
  if (options.json) return console.log(JSON.stringify({ variant: options.variant, rows }, null, 2));
  console.log(
    `an honest buyer beside floods: default limits, four providers of 2 requests a second (refusing by ${options.variant}), three tries a call`,
  );
  for (const line of tableOf(rows)) console.log(line);
  console.log(machineOf(rows));
}

/** Null after help, or a word on what is wrong. */
function understand(words: readonly string[]): FloodOptions | null {
  try {
    const options = readOptions(words);
    if (options === null) console.log(USAGE);
    return options;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
    process.exitCode = 2;
    return null;
  }
}
