import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argumentsOr, readArguments, seedsOf, wholeNumber } from './lane/arguments.ts';
import { drawMoves } from './moves/draw.ts';
import type { Move } from './moves/move.ts';
import { tellMove } from './moves/tell.ts';
import { PLANTED } from './planted/all.ts';
import { choosePlants, editsOf, type Plant, unplanted } from './planted/plant.ts';
import { drawScenario } from './run/draw-scenario.ts';
import { type Outcome, runSeed } from './run/run-seed.ts';
import type { Scenario } from './run/scenario.ts';
import { shorten } from './run/shrink.ts';
import { type LoadedService, loadAnew, loadService, unusedStandIns } from './seam.ts';

// Plays seeds and writes a line of JSON for each: `node --import ./test/simulation/hooks.ts test/simulation/main.ts --seeds 1-300`.

const USAGE = `node --import ./test/simulation/hooks.ts test/simulation/main.ts [options]

  --seeds LIST   17, 1-300 or 3,7,9-12 (1-20; none after --replay)
  --moves N      moves of each seed (200)
  --plant NAMES  names of planted faults, with commas between
  --each         the first seed with the first fault alone, the second with the second, and so on
  --trace        every event goes to standard error
  --replay FILES plays what --shorten has written, before the seeds; with commas between
  --shorten      shortens the moves of a seed that breaks a promise
  --first        ends after the first seed that breaks a promise`;

const values = argumentsOr(USAGE, (args) => {
  const read = readArguments(args, {
    seeds: { type: 'string' },
    moves: { type: 'string', default: '200' },
    plant: { type: 'string', default: '' },
    each: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    replay: { type: 'string' },
    shorten: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
  });
  const seeds = read.seeds ?? (read.replay === undefined ? '1-20' : null);
  return {
    ...read,
    seeds: (seeds === null ? [] : seedsOf(seeds)).map(String),
    moves: wholeNumber('moves', read.moves, 0),
  };
});

interface Play {
  readonly seed: string;
  readonly scenario: Scenario;
  readonly moves: readonly Move[];
}

const SHORTENING_RUNS = 400;
const write = (line: unknown) => process.stdout.write(`${JSON.stringify(line)}\n`);

function plays(): Play[] {
  const files = values.replay?.split(',') ?? [];
  const replayed = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Play);
  const drawn = values.seeds.map((seed) => {
    const scenario = drawScenario(seed);
    return { seed, scenario, moves: drawMoves(seed, scenario, values.moves) };
  });
  return [...replayed, ...drawn];
}

const names = values.plant.split(',').filter((name) => name !== '');
const plants = names.map((name) => PLANTED.find((plant) => plant.name === name) ?? fail(`no plant is called ${name}`));
Error.stackTraceLimit = values.trace ? 30 : 0;

if (!values.each) await playAll(plants, plays());
else if (plays().length !== plants.length) fail('--each takes as many seeds as faults');
else
  for (const [at, play] of plays().entries()) {
    const planted = plants.slice(at, at + 1);
    loadAnew(planted.flatMap(editsOf).map(({ file }) => file));
    if (await playAll(planted, [play])) break;
  }
process.exit(0);

/** Plays these one after another over a service with these faults. Whether the rest is to be left out. */
async function playAll(planted: readonly Plant[], played: readonly Play[]): Promise<boolean> {
  choosePlants(planted);
  const service = await loadService();
  for (const module of unusedStandIns()) fail(`nothing asks for ${module}, which seam.ts has a stand-in for`);
  for (const { name, file } of unplanted()) fail(`plant ${name}: ${file} was never loaded`);
  for (const play of played) {
    const outcome = await runSeed({
      ...play,
      service,
      onEvent: values.trace ? (line) => void process.stderr.write(line) : null,
    });
    const { seed, scenario } = play;
    const short = outcome.breach && values.shorten ? await shortened(play, outcome, service) : {};
    write({ seed, scenario: scenario.name, ...outcome, ...short });
    if (outcome.breach && values.first) return true;
  }
  return false;
}

/** The fewest moves that still break the same promise, as people read them and as a file that can be played again. */
async function shortened(
  { seed, scenario, moves }: Play,
  { breach, played }: Outcome,
  service: LoadedService,
): Promise<object> {
  const breaks = async (tried: readonly Move[]) =>
    (await runSeed({ seed, scenario, moves: tried, service })).breach?.promise === breach?.promise;
  const kept = await shorten(moves.slice(0, played), breaks, SHORTENING_RUNS);
  const file = join(tmpdir(), `percall-simulation-${seed}.json`);
  writeFileSync(file, JSON.stringify({ seed, scenario, moves: kept }, null, 1));
  return { shortened: kept.map(tellMove), replay: file };
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
