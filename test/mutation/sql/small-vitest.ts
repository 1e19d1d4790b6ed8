import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// As much of Vitest as the suites of the ports use: their tests stay in one process, and any of them runs again at once. A run of Vitest loads its files
// anew, which takes longer than the tests.

type Work = (...given: never[]) => unknown;
interface Suite {
  readonly parent: Suite | null;
  readonly before: Work[];
  readonly after: Work[];
}
interface Test {
  readonly name: string;
  readonly suite: Suite;
  readonly work: Work;
  readonly given: readonly unknown[];
}

const TEST_MS = 120_000;
const WAIT_MS = 5000;

const { resolve } = createRequire(import.meta.resolve('vitest/package.json'));
const library = async (name: string) => import(pathToFileURL(resolve(name)).href);
const { JestAsymmetricMatchers, JestChaiExpect, JestExtend, chai, setState } = await library('@vitest/expect');
for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);
export const expect = Object.assign((value: unknown, message?: string) => chai.expect(value, message), chai.expect);
setState(
  { assertionCalls: 0, isExpectingAssertions: false, isExpectingAssertionsError: null, expectedAssertionsNumber: null },
  expect,
);

let suite: Suite = { parent: null, before: [], after: [] };
export const tests: Test[] = [];

function describeOne(_: string, ...[first, second]: unknown[]): void {
  const outer = suite;
  suite = { parent: outer, before: [], after: [] };
  (typeof first === 'function' ? first : (second as Work))();
  suite = outer;
}
const addTest = (name: string, work: Work, given: readonly unknown[] = []): void =>
  void tests.push({ name, suite, work, given });
const testOne = (name: string, ...[first, second]: unknown[]): void =>
  addTest(name, (typeof first === 'function' ? first : second) as Work);
const nothing = Object.assign(() => {}, { each: () => () => {} });

const eachTest = (rows: readonly unknown[]) => (name: string, work: Work) => {
  for (const [at, row] of rows.entries()) addTest(`${name} ${at}`, work, Array.isArray(row) ? row : [row]);
};
export const describe = Object.assign(describeOne, { skipIf: (skips: unknown) => (skips ? nothing : describeOne) });
export const test = Object.assign(testOne, { each: eachTest, runIf: (runs: unknown) => (runs ? testOne : nothing) });
export const beforeEach = (work: Work): void => void suite.before.push(work);
export const afterEach = (work: Work): void => void suite.after.unshift(work);
export const afterAll = (): void => {};
export const vi = {
  waitFor: async <T>(look: () => T | Promise<T>): Promise<T> => {
    for (const until = Date.now() + WAIT_MS; ; ) {
      try {
        return await look();
      } catch (error) {
        if (Date.now() > until) throw error;
        await new Promise((next) => setTimeout(next, 5));
      }
    }
  },
};

/** Starts a file's tests outside of any suite. */
export function beginFile(): void {
  suite = { parent: null, before: [], after: [] };
}

/** Runs a test as Vitest does, and says why it failed; null when it passed. */
export async function run({ suite, work, given }: Test): Promise<unknown> {
  const suites: Suite[] = [];
  for (let one: Suite | null = suite; one; one = one.parent) suites.unshift(one);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(reject, TEST_MS, new Error('the test takes too long'));
  });
  try {
    for (const { before } of suites) for (const one of before) await one();
    await Promise.race([(work as (...all: unknown[]) => unknown)(...given), late]);
    return null;
  } catch (error) {
    return error ?? new Error('nothing was thrown');
  } finally {
    clearTimeout(timer);
    for (const { after } of suites.reverse()) for (const one of after) await Promise.resolve(one()).catch(() => {});
  }
}
