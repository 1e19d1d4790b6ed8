import { globSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';

// A process of its own (scripts/mutate-sql.ts): runs the suites of the ports over a ledger in memory, once for each change of the SQL that is given, from
// the given one on. It tells its parent which changes made a test fail.

const [file = '', from = '0'] = process.argv.slice(2);
const PORTS = join(import.meta.dirname, '../../ports');
const SMALL = new URL('small-vitest.ts', import.meta.url).href;

/** What is replaced, and by what, in every text that has it. */
type Mutant = readonly { readonly part: string; readonly text: string }[];

registerHooks({
  resolve: (name, context, next) => (name === 'vitest' ? { url: SMALL, shortCircuit: true } : next(name, context)),
});
process.env.LEDGERS = 'memory';
// A change is judged by the tests, not by what they drew.
process.env.SEED ??= '1';
const { beginFile, run, tests } = (await import(SMALL)) as typeof import('./small-vitest.ts');
const { allTexts } = await import('../../../src/store/db/sql.ts');
const { makeEveryMove } = await import('../../support/ledger/every-move.ts');

for (const path of globSync('*.test.ts', { cwd: PORTS })) {
  if (!readFileSync(join(PORTS, path), 'utf8').includes('describePorts(')) continue;
  beginFile();
  await import(join(PORTS, path));
}
makeEveryMove();

const mutants = JSON.parse(readFileSync(file, 'utf8')) as Mutant[];
const parts = new Set(mutants.flat().map(({ part }) => part));
/** By part: the tests that read it. */
const readers = new Map<string, Set<(typeof tests)[number]>>([...parts].map((part) => [part, new Set()]));
let active: Mutant | null = null;
let running: (typeof tests)[number] | null = null;

function read(whole: string): string {
  if (active) {
    const change = active.find(({ part }) => whole.includes(part));
    return change ? whole.replace(change.part, () => change.text) : whole;
  }
  for (const part of parts) if (running && whole.includes(part)) readers.get(part)?.add(running);
  return whole;
}
// A move's text is made when it is first used, for the columns that it sets: only after all tests have run each text is known.
for (const test of tests) {
  const failure = await run(test);
  if (failure !== null) throw new Error(`a test fails without a change: ${test.name}`, { cause: failure });
}
// A ledger in memory reads each text anew, so that a change is in no other test.
for (const one of allTexts()) {
  const { text, followers } = one;
  Object.defineProperty(one, 'text', { get: () => read(text) });
  Object.defineProperty(one, 'followers', { get: () => followers.map(read) });
}

const tookMs = new Map<(typeof tests)[number], number>();
for (const test of tests) {
  running = test;
  const since = performance.now();
  const failure = await run(test);
  tookMs.set(test, performance.now() - since);
  if (failure !== null) throw new Error(`a test fails without a change: ${test.name}`, { cause: failure });
}

process.send?.({ at: Number(from) - 1, by: null });
for (const [at, mutant] of mutants.entries()) {
  if (at < Number(from)) continue;
  active = mutant;
  const all = new Set(mutant.flatMap(({ part }) => [...(readers.get(part) ?? [])]));
  const quickFirst = [...all].sort((a, b) => (tookMs.get(a) ?? 0) - (tookMs.get(b) ?? 0));
  let by: string | null = null;
  for (const test of quickFirst) {
    if ((await run(test)) === null) continue;
    by = test.name;
    break;
  }
  process.send?.({ at, by });
  // The parent ends this process when a change makes a test turn for ever.
  await new Promise(setImmediate);
}
process.exit();
