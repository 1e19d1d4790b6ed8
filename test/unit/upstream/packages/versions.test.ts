import { describe, expect, test } from 'vitest';
import {
  compareNumeric,
  comparePython,
  compareSemver,
  sortVersions,
} from '../../../../src/upstream/packages/ecosystems.ts';

describe.each([
  [
    'semver',
    compareSemver,
    ['0', '0.0.1-alpha', '0.2', '0.2.7', '1.0.0-rc.1', '1.0.0', 'v1.2.0', '1.10.0'],
    ['x', '1.2.3.4', ''],
  ],
  ['PEP 440', comparePython, ['0', '1.0.dev1', '1.0a1', '1.0', '1.0.post1', '1.10', '1!0.1'], ['x', '1.0-', '1.*']],
  ['numbers', compareNumeric, ['0', '1.2', '1.2.0.1', 'v1.10', '13.0.1'], ['1.0-rc1', '1.0.0.Final', '1..0', '']],
] as const)('%s', (_name, compare, ascending, unsure) => {
  test('orders', () => {
    for (const [at, version] of ascending.entries()) {
      expect(compare(version, version)).toBe(0);
      for (const later of ascending.slice(at + 1)) {
        expect([version, later, Math.sign(compare(version, later) ?? 0)]).toEqual([version, later, -1]);
        expect(Math.sign(compare(later, version) ?? 0)).toBe(1);
      }
    }
  });
  test.each(unsure)('leaves %o undecided', (text) => {
    expect(compare(text, ascending[0])).toBeNull();
    expect(compare(ascending[0], text)).toBeNull();
  });
});

test('trailing zeros make no difference to numbers', () => {
  expect(compareNumeric('1.0', '1')).toBe(0);
});

test('sortVersions: each once, ascending; in the order given where that is unsure', () => {
  expect(sortVersions(['3.1.6', '2.2.13', '3.0.7', '2.2.13'], comparePython)).toEqual(['2.2.13', '3.0.7', '3.1.6']);
  expect(sortVersions(['2.0-rc1', '1.0', '2.0-rc1'], compareNumeric)).toEqual(['2.0-rc1', '1.0']);
});
