import { describe, expect, test } from 'vitest';
import { parseRequirement } from '../../../../src/upstream/packages/pypi.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const plain = { extras: [], specifier: null, extra: null, marker: null };

describe('parseRequirement', () => {
  test.each([
    ['peppercorn', { ...plain, name: 'peppercorn' }],
    ['click (>=7.1.2)', { ...plain, name: 'click', specifier: '>=7.1.2' }],
    ['tomli (<2.0.0,>=0.2.6)', { ...plain, name: 'tomli', specifier: '<2.0.0,>=0.2.6' }],
    ['asgiref ~= 3.2', { ...plain, name: 'asgiref', specifier: '~=3.2' }],
    ['foo===1.0', { ...plain, name: 'foo', specifier: '===1.0' }],
    ['zope.interface', { ...plain, name: 'zope.interface' }],
    [
      'requests[socks, security]>=2.8.1',
      { ...plain, name: 'requests', extras: ['socks', 'security'], specifier: '>=2.8.1' },
    ],
    ["pytest; extra == 'dev'", { ...plain, name: 'pytest', extra: 'dev' }],
    ['pytest>=4 ; "dev" == extra', { ...plain, name: 'pytest', specifier: '>=4', extra: 'dev' }],
    ['a ; python_version < "3.7"', { ...plain, name: 'a', marker: 'python_version < "3.7"' }],
    [
      'b (>=1) ; (python_version < "3.9") and extra == \'testing\'',
      { ...plain, name: 'b', specifier: '>=1', extra: 'testing', marker: 'python_version < "3.9"' },
    ],
    [
      'c ; (sys_platform != "win32" or python_version < "3.10") and extra == \'t\'',
      { ...plain, name: 'c', extra: 't', marker: 'sys_platform != "win32" or python_version < "3.10"' },
    ],
    [
      'd ; python_version < "3" and sys_platform == "linux" and (extra == "x")',
      { ...plain, name: 'd', extra: 'x', marker: 'python_version < "3" and sys_platform == "linux"' },
    ],
  ])('%s', (line, expected) => {
    expect(parseRequirement(line)).toEqual(expected);
  });

  test.each([
    ['e ; extra == "x" or extra == "y"', 'extra == "x" or extra == "y"'],
    [
      'e ; extra == "x" or python_version < "3" and extra == "y"',
      'extra == "x" or python_version < "3" and extra == "y"',
    ],
    ['e ; extra == "x" and extra == "y"', 'extra == "x" and extra == "y"'],
    ['e ; extra != "x"', 'extra != "x"'],
    ['e ; (extra == "x"', '(extra == "x"'],
    ['e ; python_version == "and extra == 1"', 'python_version == "and extra == 1"'],
  ])('%s: no single extra, so the marker stays as written', (line, marker) => {
    expect(parseRequirement(line)).toEqual({ ...plain, name: 'e', marker });
  });

  test('a direct reference keeps its semicolons', () => {
    expect(parseRequirement('pip @ https://example.org/a;b.zip ; extra == "x"')).toEqual({
      ...plain,
      name: 'pip',
      specifier: '@ https://example.org/a;b.zip',
      extra: 'x',
    });
  });

  test.each(['', '-e .', '>=1.0', '; extra == "x"'])('%o is none', (line) => {
    expect(parseRequirement(line)).toBeNull();
  });

  test('takes time linear to the line, whatever it holds', () => {
    const long = [
      `a ; ${'('.repeat(50_000)}`,
      `a ; ${'extra == "x" and '.repeat(20_000)}b`,
      `a${'-'.repeat(100_000)}`,
      `a[${'b,'.repeat(50_000)}`,
    ];
    const parseAll = () => {
      for (const line of long) parseRequirement(line);
    };
    expect(cpuTimeMs(1000, parseAll)).toBeLessThan(1000);
  });
});
