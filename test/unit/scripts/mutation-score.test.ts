import { expect, test } from 'vitest';
import { type Equivalent, type Mutant, scoreMutants } from '../../../scripts/lib/mutation-score.ts';

const TEXTS: Record<string, string> = {
  'a.ts': ['export function least(a: number, b: number) {', '  return a < b', '    ? a', '    : b;', '}', ''].join(
    '\n',
  ),
  'b.ts': 'const x = 1 < 2;\nconst y = 1 < 2;\n',
};
const textOf = (file: string): string => TEXTS[file] ?? '';

/** A mutant of the text between two positions. Lines and columns count as Stryker counts them. */
function mutant(fileName: string, at: [number, number, number, number], replacement: string, status: string): Mutant {
  const [line, column, endLine, endColumn] = at;
  return {
    fileName,
    location: { start: { line, column }, end: { line: endLine, column: endColumn } },
    replacement,
    status,
  };
}
const equal = (source: string, replacement: string, more: Partial<Equivalent> = {}): Equivalent => ({
  file: 'a.ts',
  source,
  replacement,
  reason: 'it is the same',
  ...more,
});
const COMPARED = mutant('a.ts', [2, 10, 2, 15], 'a <= b', 'Survived');

test('a file’s score is the share of its mutants that a test notices; time-outs and errors outside of tests count too', () => {
  const mutants = [
    mutant('a.ts', [2, 10, 2, 15], 'a > b', 'Killed'),
    mutant('a.ts', [2, 10, 2, 15], 'true', 'Timeout'),
    mutant('a.ts', [2, 10, 2, 15], 'false', 'RuntimeError'),
    mutant('a.ts', [2, 10, 2, 15], 'a >= b', 'NoCoverage'),
    mutant('a.ts', [2, 10, 2, 15], '""', 'Ignored'),
  ];
  expect(scoreMutants(mutants, [], textOf)).toEqual({
    wrong: [],
    files: [
      {
        file: 'a.ts',
        killed: 3,
        survived: 1,
        equivalent: 0,
        ignored: 1,
        score: 75,
        survivors: ['2: a < b → a >= b'],
      },
    ],
  });
});

test('a listed equivalent does not count, found by its text wherever it is and however it is broken into lines', () => {
  const whole = mutant('a.ts', [2, 10, 4, 8], 'b', 'NoCoverage');
  const listed = [equal('a < b', 'a <= b'), equal('a < b ? a : b', 'b')];
  const { files, wrong } = scoreMutants([COMPARED, whole], listed, textOf);
  expect([files, wrong]).toMatchObject([[{ survived: 0, equivalent: 2, score: 100, survivors: [] }], []]);
});

test('the same expression on another line is another mutant when the entry names the line', () => {
  const mutants = [
    mutant('b.ts', [1, 11, 1, 16], 'true', 'Survived'),
    mutant('b.ts', [2, 11, 2, 16], 'true', 'Survived'),
  ];
  const listed = [equal('1 < 2', 'true', { file: 'b.ts', line: 'const y = 1 < 2;' })];
  const { files } = scoreMutants(mutants, listed, textOf);
  expect(files).toMatchObject([{ survived: 1, equivalent: 1, survivors: ['1: 1 < 2 → true'] }]);
});

test('an entry without a match, or one that a test kills, is reported; one of a file that was not mutated is not', () => {
  const killed = mutant('a.ts', [2, 10, 2, 15], 'a > b', 'Killed');
  const listed = [equal('a < c', 'true'), equal('a < b', 'a > b'), equal('x', 'y', { file: 'b.ts' })];
  expect(scoreMutants([COMPARED, killed], listed, textOf).wrong).toEqual([
    'a.ts: no mutant is a < c → true',
    'a.ts: a test kills a < b → a > b',
  ]);
});
