import { describe, expect, test } from 'vitest';
import { npmLicence, pythonLicence, shortLicence } from '../../../../src/upstream/packages/project.ts';

describe('shortLicence', () => {
  test.each(['MIT', '(WTFPL OR MIT)', 'SEE LICENSE IN LICENSE.md', ' BSD '])('%o says something', (text) => {
    expect(shortLicence(text)).toBe(text.trim());
  });
  test.each(['', '...', 'UNKNOWN', 'unknown', 'x'.repeat(101), 'MIT License\n\nCopyright', null, undefined, 3, {}])(
    '%o says nothing',
    (text) => {
      expect(shortLicence(text)).toBeNull();
    },
  );
});

describe('npmLicence', () => {
  test.each([
    [['MIT'], 'MIT'],
    [[{ type: 'MIT', url: 'https://example.org' }], 'MIT'],
    [[undefined, [{ type: 'MIT', url: 'https://example.org' }]], 'MIT'],
    [[[{ type: 'MIT' }, { type: 'Apache-2.0' }]], '(MIT OR Apache-2.0)'],
    [[['MIT', 'GPL-2.0']], '(MIT OR GPL-2.0)'],
    [[undefined, undefined, 'ISC'], 'ISC'],
    [['MIT', [{ type: 'GPL' }]], 'MIT'],
    [[{ url: 'https://example.org' }], null],
    [[[]], null],
    [[], null],
  ])('%o is %o', (values, expected) => {
    expect(npmLicence(...values)).toBe(expected);
  });
});

describe('pythonLicence', () => {
  const OSI = 'License :: OSI Approved';
  test.each([
    [
      'PEP 639 goes first',
      { license_expression: 'MIT OR Apache-2.0', license: 'BSD', classifiers: [`${OSI} :: BSD License`] },
      'MIT OR Apache-2.0',
    ],
    [
      'then the short text',
      { license_expression: null, license: 'BSD', classifiers: [`${OSI} :: MIT License`] },
      'BSD',
    ],
    [
      'a whole text gives way to the classifier',
      { license: `Copyright\n${'x'.repeat(2000)}`, classifiers: [`${OSI} :: BSD License`] },
      'BSD License',
    ],
    [
      'several classifiers',
      { license: '', classifiers: [`${OSI} :: MIT License`, 'Topic :: Software', 'License :: Public Domain'] },
      'MIT License, Public Domain',
    ],
    ['the family alone names none', { classifiers: [OSI] }, null],
    ['nothing', {}, null],
  ])('%s', (_what, info, expected) => {
    expect(pythonLicence(info)).toBe(expected);
  });
});
