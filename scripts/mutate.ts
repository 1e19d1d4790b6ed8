import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { type Equivalent, scoreMutants } from './lib/mutation-score.ts';
import { textTable } from './lib/text-table.ts';

const EQUIVALENTS = 'test/mutation/equivalent.json';
const DEFAULT_FILES = ['src/payment/**/*.ts', 'src/facilitator/**/*.ts'];
/** The least score of a file, in percent of its mutants that are not equivalent. A lower score fails the run. */
const WANTED = 95;

const USAGE = `npm run mutate -- [--static] [FILE…]
Changes the money code in small ways, one at a time, and checks that its unit tests fail. Without files: all of src/payment and src/facilitator.
--static  also mutates code that runs while a module loads: each mutant loads the modules again, which takes seconds.`;

const { values, positionals } = parseArgs({
  options: { static: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (values.help) console.log(USAGE);
else await mutate(positionals.length > 0 ? positionals : DEFAULT_FILES, !values.static);

async function mutate(files: string[], ignoreStatic: boolean): Promise<void> {
  const results = await new Stryker({ mutate: files, ignoreStatic }).runMutationTest();
  const mutants = results.map((mutant) => ({ ...mutant, fileName: relative('.', mutant.fileName) }));
  const equivalents = JSON.parse(readFileSync(EQUIVALENTS, 'utf8')) as Equivalent[];
  const { files: scores, wrong } = scoreMutants(mutants, equivalents, (file) => readFileSync(file, 'utf8'));
  const low = scores.filter(({ score }) => score < WANTED);

  for (const { file, survivors } of scores)
    for (const survivor of survivors) console.log(`survived  ${file}:${survivor}`);
  const rows = scores.map((of) => [
    of.file,
    ...[of.killed, of.survived, of.equivalent, of.ignored].map(String),
    of.score.toFixed(1),
  ]);
  console.log(
    ['', ...textTable([['file', 'killed', 'survived', 'equivalent', 'ignored', 'score'], ...rows])].join('\n'),
  );
  for (const entry of wrong) console.error(`${EQUIVALENTS} is wrong: ${entry}`);
  for (const { file, score } of low) console.error(`${file}: ${score.toFixed(1)} % is less than ${WANTED} %`);
  if (results.length === 0) console.error('nothing was mutated: do the files exist?');
  process.exitCode = low.length > 0 || wrong.length > 0 || results.length === 0 ? 1 : 0;
}
