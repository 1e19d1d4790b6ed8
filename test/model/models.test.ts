import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Checker, canCheck, openChecker, runWithout } from '../../scripts/lib/model/checker.ts';
import { boundsText, MODELS } from '../../scripts/lib/model/models.ts';

const HAS_SPIN = await canCheck();
if (!HAS_SPIN && process.env.REQUIRE_SPIN === '1')
  throw new Error('REQUIRE_SPIN=1, but spin or a C compiler is missing');

const README = readFileSync('docs/model/README.md', 'utf8');
/** Switches of a model that are no guard of its promises. Its README says why. */
const NO_GUARDS = ['FENCING_TOKEN'];

const namesIn = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map(([, name = '']) => name)),
];

describe.each(MODELS.map((model) => [model.name, model] as const))('the model %s', (name, model) => {
  const { invariants, guards, small } = model;
  // The pause of a process takes as long as all other runs. Its guard is switched off in the quick lane too.
  const explored = process.env.SLOW ? small : small.filter(({ PAUSES }) => !PAUSES);
  const source = readFileSync(`docs/model/${name}.pml`, 'utf8');
  const section = README.slice(README.indexOf('## The guards')).split(`\`${name}.pml\`:`)[1]?.split('.pml`:')[0] ?? '';

  test('has a guard of the list for each of its switches, and each guard names a file of the code', () => {
    const switches = namesIn(source, /\bON\(([A-Z]\w+)\)/g).filter((each) => !NO_GUARDS.includes(each));
    expect(guards.map((guard) => guard.name).toSorted()).toEqual(switches.toSorted());
    expect(guards.filter(({ code }) => !existsSync(code))).toEqual([]);
  });

  test('has a guard for each invariant, without which it breaks', () => {
    const broken = guards.flatMap(({ breaks, breaksToo = breaks }) => [breaks, breaksToo]);
    expect(invariants.filter((each) => !broken.includes(each))).toEqual([]);
  });

  test('numbers its invariants and its guards as the list does', () => {
    const lists = [invariants, guards.map((guard) => guard.name)];
    const numbered = lists.flatMap((list) => list.map((each, at) => `\n#define ${each} ${at + 1}\n`));
    expect(numbered.filter((line) => !source.includes(line))).toEqual([]);
  });

  test('has a row in its README for each guard, with the invariant that it breaks', () => {
    const rows = [...section.matchAll(/^\| `(\w+)` \|.*\| `(\w+)` \|$/gm)].map(([, guard, breaks]) => [guard, breaks]);
    expect(rows).toEqual(guards.map((guard) => [guard.name, guard.breaks]));
  });

  describe.skipIf(!HAS_SPIN)('checked by Spin (skipped without spin and cc)', () => {
    let checker: Checker;
    beforeAll(async () => {
      checker = await openChecker(model);
    });
    afterAll(() => checker.close());

    test.each(explored.map((bounds) => [boundsText(bounds), bounds] as const))(
      'keeps all of its invariants in every order of steps within %s',
      async (_text, bounds) => {
        const { isViolated, states } = await checker.check({ bounds });
        expect(isViolated).toBe(false);
        expect(states).toBeGreaterThan(100_000);
      },
    );

    const broken = guards.flatMap((guard) =>
      [guard.breaks, ...(guard.breaksToo ? [guard.breaksToo] : [])].map(
        (breaks) => [breaks, guard.name, guard] as const,
      ),
    );
    test.each(broken)('breaks %s without its guard %s', async (breaks, _name, guard) => {
      const run = runWithout(model, guard, breaks);
      expect((await checker.check(run)).isViolated).toBe(true);
      // A second line is not needed while the guard before it stands.
      if (guard.behind) expect((await checker.check({ bounds: run.bounds, off: guard.name })).isViolated).toBe(false);
    });
  });
});
