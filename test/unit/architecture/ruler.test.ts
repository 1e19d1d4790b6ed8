import { describe, expect, test } from 'vitest';
import { readSources, type Source } from '../../support/sources.ts';
import { judge, LONGEST, measureRest, measureSource } from './ruler.ts';

/** The most of each figure that `src` may have. A ceiling may only be lowered. */
const SOURCE_CEILINGS = {
  files: 321,
  lines: 60_647,
  [LONGEST]: 600,
  'files whose only importer is in their folder, in a thousand': 100,
  'of these below 40 lines': 0,
  'spreads of a literal': 0,
  'lines wider than 120': 9,
  'functions with more than 60 lines of their own': 0,
  'option bags': 118,
  'option bags of more than 10 members': 3,
  'type names used twice in a room': 1,
  'statements of SQL for the ledger': 154,
};
/** The same for what does not ship. */
const REST_CEILINGS = { 'spreads of a literal': 0 };

describe('the tree', () => {
  test('keeps to the ruler in src', () => {
    const files = readSources('src/**/*.ts');
    expect(files.length).toBeGreaterThan(100);
    expect(judge(measureSource(files), SOURCE_CEILINGS)).toEqual([]);
  });

  test('keeps to the ruler in the command, scripts, tests and the local network', () => {
    const files = ['cli', 'scripts', 'test', 'dev'].flatMap((folder) => readSources(`${folder}/**/*.ts`));
    expect(judge(measureRest(files), REST_CEILINGS)).toEqual([]);
  });
});

describe('the ruler finds', () => {
  const file = (path: string, text: string): Source => ({ path: `src/${path}`, text });
  const lines = (count: number): string => 'x();\n'.repeat(count);
  const story = file('room/story.ts', lines(40));
  /** The rows in which a tree with this file differs from the tree without it, apart from its size. */
  const found = (...planted: Source[]): Record<string, number> => {
    const before = measureSource([story]);
    const after = measureSource([story, ...planted]);
    const rows = Object.entries(after).filter(([row, is]) => is !== before[row] && !/^(files|lines)$/.test(row));
    return Object.fromEntries(rows);
  };

  test('a drawer: a short file that one neighbour alone imports', () => {
    const drawer = file('room/drawer.ts', lines(39));
    const importer = file('room/importer.ts', `import { a } from './drawer.ts';\n${lines(38)}`);
    const rows = found(drawer, importer);
    expect(rows).toEqual({
      'files whose only importer is in their folder, in a thousand': 333,
      'of these below 40 lines': 1,
    });
    const other = file('other/importer.ts', "import type { A } from '../room/drawer.ts';\n");
    expect(found(drawer, importer, other)).toEqual({});
    expect(found(drawer, other)).toEqual({});
    expect(found({ ...drawer, text: lines(40) }, importer)).not.toHaveProperty('of these below 40 lines');
  });

  test('a spread around a literal', () => {
    expect(found(file('room/x.ts', 'const a = { ...{ b, c }, ...d };\n'))).toEqual({ 'spreads of a literal': 1 });
    expect(measureRest([file('x.ts', 'f({ ...{ b, ...{ c } } });\n')])).toEqual({ 'spreads of a literal': 2 });
  });

  test('a wide line, a comment too', () => {
    const wide = `// ${'x'.repeat(118)}\n`;
    expect(found(file('room/x.ts', `${wide}${wide.slice(1)}`))).toEqual({ 'lines wider than 120': 1 });
  });

  test('a long function, by its own lines', () => {
    const row = { 'functions with more than 60 lines of their own': 1 };
    const size = { [LONGEST]: 61 };
    expect(found(file('room/x.ts', `function long() {\n${lines(59)}}\n`))).toEqual({ ...row, ...size });
    expect(found(file('room/x.ts', `const o = {\nlong: async () => {\n${lines(59)}},\n};\n`))).toMatchObject(row);
    expect(found(file('room/x.ts', `function fits() {\n${lines(58)}}\n`))).not.toMatchObject(row);
    const inner = `const inner = () => {\n${lines(30)}};\n`;
    expect(found(file('room/x.ts', `function outer() {\n${inner}${inner}}\n`))).not.toMatchObject(row);
  });

  test('an option bag, and a large one', () => {
    const bag = (members: number): string => `interface XOptions { ${'a: 1; '.repeat(members)} }\n`;
    expect(found(file('room/x.ts', bag(10)))).toEqual({ 'option bags': 1 });
    expect(found(file('room/x.ts', bag(11)))).toEqual({ 'option bags': 1, 'option bags of more than 10 members': 1 });
  });

  test('a type name that stands twice in a room', () => {
    const [one, two] = [file('room/x.ts', 'interface Sale {}\n'), file('room/deep/y.ts', 'type Sale = 1;\n')];
    expect(found(one, two)).toEqual({ 'type names used twice in a room': 1 });
    expect(found(one, { ...two, path: 'src/other/y.ts' })).toEqual({});
  });

  test('a statement of the ledger', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text.
    const text = "db.prepare(`\n  SELECT ${columns} FROM a`); db.prepare('UPDATE a SET b = 1'); log('select one');\n";
    expect(found(file('store/x.ts', text))).toEqual({ 'statements of SQL for the ledger': 2 });
    expect(found(file('collector/store/x.ts', text))).toEqual({});
  });
});

describe('a ceiling', () => {
  test('allows its figure and a fiftieth less', () => {
    expect(judge({ a: 100 }, { a: 100 })).toEqual([]);
    expect(judge({ a: 98 }, { a: 100 })).toEqual([]);
    expect(judge({ a: 101 }, { a: 100 })).toEqual(['a: 101; 100 are allowed']);
    expect(judge({ a: 97 }, { a: 100 })).toEqual(['a: 97; lower the ceiling from 100']);
    expect(judge({ a: 1 }, { a: 2 })).toEqual(['a: 1; lower the ceiling from 2']);
    expect([judge({ [LONGEST]: 1 }, { [LONGEST]: 9 }), judge({ [LONGEST]: 9 }, { [LONGEST]: 8 })]).toEqual([
      [],
      [`${LONGEST}: 9; 8 are allowed`],
    ]);
    expect(judge({ a: 0 }, {})).toEqual(['a: 0, and no ceiling']);
  });
});
