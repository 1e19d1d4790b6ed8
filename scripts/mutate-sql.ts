import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { render } from '../src/store/db/sql.ts';
import { SQLITE } from '../src/store/db/sqlite.ts';
import { nothingFor } from '../test/support/ledger/common-texts.ts';
import { type SqlMutant, sqlMutants } from './lib/sql-mutants.ts';
import { textTable } from './lib/text-table.ts';

const EQUIVALENTS = 'test/mutation/equivalent-sql.json';
const WANTED = 95;
/** The longest that the tests may take for one change. */
const LONGEST_MS = 600_000;
const RUNNER = new URL('../test/mutation/sql/run-mutants.ts', import.meta.url).pathname;

const USAGE = `npm run mutate:sql -- [FILE…]
Changes the SQL of src/store in small ways, one at a time, and checks that the tests of the ports fail over a ledger in memory. Without files: all subjects.
Stryker (npm run mutate) changes the code around the SQL.`;

/** In the order in which they are loaded: a text is of the first file that makes it. */
const SUBJECTS = ['payments', 'lightning-claims', 'channels', 'lightning', 'market', 'books', 'service-records'].map(
  (name) => `src/store/${name}.ts`,
);

/** A change that no test can notice. */
interface Equivalent {
  readonly file: string;
  /** What is replaced, in brackets, with code around it. Of the text on either side an end is enough. */
  readonly where: string;
  readonly replacement: string;
  readonly reason: string;
}

/** A change of a fragment of the source, in every text that has it, of any file: the fragment is of the first one. */
interface Planned extends Pick<SqlMutant, 'where' | 'replacement'> {
  readonly file: string;
  readonly changes: Change[];
}
interface Change {
  /** What of a text is replaced by `text`: a statement or a follower, or the end of one that is made for its columns. */
  readonly part: string;
  readonly text: string;
}

const { values, positionals } = parseArgs({
  options: { verbose: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (values.help) console.log(USAGE);
else await mutate(positionals.length > 0 ? positionals : SUBJECTS);

async function mutate(files: readonly string[]): Promise<void> {
  const planned = await plan(files);
  const folder = mkdtempSync(join(tmpdir(), 'percall-sql-'));
  const killed = await runAll(planned, join(folder, 'plan.json'));
  rmSync(folder, { recursive: true });

  const equivalents = (JSON.parse(readFileSync(EQUIVALENTS, 'utf8')) as Equivalent[]).filter(({ file }) =>
    files.includes(file),
  );
  const isIt = (one: Equivalent, { file, where, replacement }: Planned) =>
    one.file === file && where.includes(one.where) && one.replacement === replacement;
  const alive = planned.filter((one) => !killed.has(one));
  const survivors = alive.filter((one) => !equivalents.some((known) => isIt(known, one)));
  const wrong = equivalents.filter((known) => !alive.some((one) => isIt(known, one)));
  for (const one of survivors) console.log(`survived  ${nameOf(one)}`);

  const rows = files.map((file) => {
    const of = (list: readonly Planned[]) => list.filter((one) => one.file === file).length;
    const found = of(planned) - of(alive);
    const counted = found + of(survivors);
    return {
      file,
      killed: found,
      survived: of(survivors),
      equivalent: of(alive) - of(survivors),
      score: counted === 0 ? 100 : (found / counted) * 100,
    };
  });
  const cells = rows.map((of) => [
    of.file,
    ...[of.killed, of.survived, of.equivalent].map(String),
    of.score.toFixed(1),
  ]);
  console.log(['', ...textTable([['file', 'killed', 'survived', 'equivalent', 'score'], ...cells])].join('\n'));
  for (const one of wrong) console.error(`${EQUIVALENTS} is wrong: ${one.file}: ${one.where} → ${one.replacement}`);
  for (const { file, score } of rows)
    if (score < WANTED) console.error(`${file}: ${score.toFixed(1)} % is less than ${WANTED} %`);
  process.exitCode = wrong.length > 0 || rows.some(({ score }) => score < WANTED) || planned.length === 0 ? 1 : 0;
}

/** The changes that SQLite can prepare. */
async function plan(files: readonly string[]): Promise<Planned[]> {
  const found = await partsByFile();
  // It loads all subjects.
  const { openMemoryLedger } = await import('../test/support/ledger/fresh-ledger.ts');
  const db = openMemoryLedger();
  const rendered = (text: string): string => render(text, SQLITE, nothingFor(text)).text;
  const isSql = (text: string): boolean => {
    try {
      db.prepare(rendered(text));
      return true;
    } catch {
      return false;
    }
  };
  const all = new Map<string, Planned>();
  for (const { file, whole, part } of found)
    for (const { where, replacement, text } of sqlMutants(part)) {
      // The code around a change tells the fragment.
      const key = `${where} ${replacement}`;
      const known = all.get(key);
      if (known?.changes.some((one) => one.part === part)) continue;
      const changed = whole.replace(part, () => text);
      // What SQLite says in the same words, as that it holds the lease, is tested over PostgreSQL.
      if (rendered(changed) === rendered(whole) || !isSql(changed)) continue;
      if (known) known.changes.push({ part, text });
      else all.set(key, { file, where, replacement, changes: [{ part, text }] });
    }
  db.close();
  return [...all.values()].filter(({ file }) => files.includes(file));
}

interface Part {
  readonly file: string;
  readonly whole: string;
  readonly part: string;
}

async function partsByFile(): Promise<Part[]> {
  const { allTexts } = await import('../src/store/db/sql.ts');
  const { makeEveryMove } = await import('../test/support/ledger/every-move.ts');
  const known = new Set<string>();
  const found: Part[] = [];
  makeEveryMove();
  for (const file of SUBJECTS) {
    await import(join('..', file));
    for (const { text, followers } of allTexts()) {
      // SQLite runs one claim at a time, so neither this text nor what follows from it.
      if (text.startsWith('WITH RECURSIVE')) continue;
      for (const whole of [text, ...followers])
        for (const part of isMove(whole) ? partsOfMove(whole) : [whole]) {
          if (known.has(part)) continue;
          known.add(part);
          found.push({ file, whole, part });
        }
    }
  }
  return found;
}

function isMove(text: string): boolean {
  return text.startsWith('UPDATE usdc_payments SET state = @to');
}

/** The condition of a move, and what a settlement sets. Moves have many sets of columns, and these in common. */
function partsOfMove(text: string): string[] {
  const condition = text.slice(text.lastIndexOf('WHERE id = @id AND state'));
  const charged = /charged = CASE .* ELSE price END/.exec(text)?.[0];
  const balance = /CAST\(balance \+ CASE .* ELSE 0 END AS TEXT\)/.exec(text)?.[0];
  return [condition, charged, balance].filter((part) => part !== undefined);
}

/** Which changes make a test fail. One that makes a test turn for ever costs a process. */
async function runAll(planned: readonly Planned[], file: string): Promise<ReadonlySet<Planned>> {
  writeFileSync(file, JSON.stringify(planned.map(({ changes }) => changes)));
  const killed = new Set<Planned>();
  for (let from = 0; from < planned.length; ) {
    const child = fork(RUNNER, [file, String(from)], { serialization: 'advanced' });
    let hasBegun = false;
    let timer = setTimeout(() => {}, 0);
    child.on('message', ({ at, by }: { at: number; by: string | null }) => {
      const one = planned[at];
      if (one && by !== null) killed.add(one);
      if (one && values.verbose) console.log(`${by === null ? 'survived' : 'killed'}  ${nameOf(one)}`);
      hasBegun = true;
      from = at + 1;
      clearTimeout(timer);
      timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    clearTimeout(timer);
    if (!hasBegun) throw new Error('the tests fail without a change');
    const stopped = planned[from];
    if (code !== 0 && stopped) {
      killed.add(stopped);
      from++;
    }
  }
  return killed;
}

function nameOf({ file, where, replacement }: Planned): string {
  return `${file}: ${where} → ${replacement}`;
}
