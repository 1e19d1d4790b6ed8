import { readFileSync } from 'node:fs';
import { matchesGlob, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { type Equivalent, type Mutant, scoreMutants } from './lib/mutation-score.ts';
import { textTable } from './lib/text-table.ts';

const EQUIVALENTS = 'test/mutation/equivalent.json';

/** Files that the same tests hold. */
interface Group {
  readonly files: readonly string[];
  readonly config: string;
  /** The databases on which the tests of the store run. */
  readonly ledgers?: string;
}

const STORE = 'vitest.mutate-store.config.ts';
/** A file is in the first group that names it. */
const GROUPS: readonly Group[] = [
  { files: ['src/{payment,facilitator,lib/limits}/**/*.ts'], config: 'vitest.mutate.config.ts' },
  {
    files: [
      'src/store/db/{connections,migrate,postgres,postgres-text,write-queue}.ts',
      'src/store/{copy,instances,lightning-claims,minute-windows,open-postgres,reports}.ts',
    ],
    config: STORE,
    ledgers: 'postgres',
  },
  { files: ['src/store/db/{group-commit,log-sync,sqlite}.ts', 'src/store/open.ts'], config: STORE, ledgers: 'sqlite' },
  { files: ['src/store/**/*.ts'], config: STORE, ledgers: 'memory' },
];
/** The least score of a file, in percent of its mutants that are not equivalent. A lower score fails the run. */
const WANTED = 95;

const USAGE = `npm run mutate -- [--static] [FILE…]
Changes the money code in small ways, one at a time, and checks that its quick tests fail. Without files: all of src/payment, src/facilitator and src/store.
--static  also mutates code that runs while a module loads: each mutant loads the modules again, which takes seconds.`;

const { values, positionals } = parseArgs({
  options: { static: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (values.help) console.log(USAGE);
else await mutate(positionals, !values.static);

async function mutate(files: readonly string[], ignoreStatic: boolean): Promise<void> {
  const results: Mutant[] = [];
  for (const [group, named] of groupsOf(files)) results.push(...(await mutantsOf(group, named, ignoreStatic)));
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

/** The groups of these files, or of all, with what is mutated of each. */
function groupsOf(files: readonly string[]): [Group, readonly string[]][] {
  const isIn = (group: Group, file: string) => group.files.some((glob) => matchesGlob(file, glob));
  const groupOf = (file: string) => GROUPS.find((group) => isIn(group, file)) ?? GROUPS[0];
  const others = (group: Group) => GROUPS.slice(0, GROUPS.indexOf(group)).flatMap((one) => one.files);
  const all = (group: Group) => [...group.files, ...others(group).map((glob) => `!${glob}`)];
  return GROUPS.map((group): [Group, readonly string[]] => [
    group,
    files.length === 0 ? all(group) : files.filter((file) => groupOf(file) === group),
  ]).filter(([, named]) => named.length > 0);
}

function mutantsOf(
  { config, ledgers }: Group,
  mutated: readonly string[],
  ignoreStatic: boolean,
): Promise<readonly Mutant[]> {
  if (ledgers !== undefined) process.env.LEDGERS = ledgers;
  const vitest = { configFile: config, related: true };
  return new Stryker({ mutate: [...mutated], ignoreStatic, vitest }).runMutationTest();
}
