import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { argumentsOr, readArguments, seedsOf, wholeNumber } from './lane/arguments.ts';
import { playSeeds } from './lane/play-seeds.ts';
import { PLANTED } from './planted/all.ts';
import { FOUND_FILE, type Found, readFound } from './planted/found.ts';
import type { Plant } from './planted/plant.ts';
import { drawScenario } from './run/draw-scenario.ts';

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const USAGE = `npm run simulate:plants -- [--only TEXT] [--most N] [--seeds LIST]

Finds planted faults and writes which seed found which; those that are in the table already stay.

  --only TEXT  finds anew those whose names hold this
  --most N     how many seeds are tried for each (1000)
  --seeds LIST  tries these alone, such as 3,7,9-12

Ends with 0 where all were found, 1 where one was not, 2 for arguments that it does not know.`;

const { only, seeds } = argumentsOr(USAGE, (args) => {
  const values = readArguments(args, {
    only: { type: 'string' },
    most: { type: 'string', default: '1000' },
    seeds: { type: 'string' },
  });
  const most = wholeNumber('most', values.most, 1);
  return { only: values.only, seeds: seedsOf(values.seeds ?? `1-${most}`) };
});

const found = new Map(readFound().map((row) => [row.plant, row]));
const isWanted = ({ name }: Plant) => (only === undefined ? !found.has(name) : name.includes(only));
const wanted = PLANTED.filter(isWanted);

function write(): void {
  const rows = PLANTED.flatMap(({ name }) => found.get(name) ?? []);
  writeFileSync(FOUND_FILE, `${JSON.stringify(rows, null, 2)}\n`);
}

async function find({ name, breaks, inChannels }: Plant): Promise<void> {
  const tried = inChannels ? seeds.filter((seed) => drawScenario(String(seed)).channels) : seeds;
  const reported = await playSeeds({ seeds: tried, plant: name, first: true });
  const last = reported.at(-1);
  if (!last?.breach || !breaks.includes(last.breach.promise)) {
    say(
      `${name}: not found in ${tried.length} seeds${last?.breach ? `; seed ${last.seed} breaks "${last.breach.promise}"` : ''}`,
    );
    process.exitCode = 1;
    return;
  }
  const row: Found = { plant: name, promise: last.breach.promise, seed: Number(last.seed) };
  found.set(name, row);
  say(`${name}: "${row.promise}" in seed ${row.seed}`);
  write();
}

async function work(): Promise<void> {
  for (let plant = wanted.shift(); plant; plant = wanted.shift()) await find(plant);
}
await Promise.all(Array.from({ length: availableParallelism() }, work));
