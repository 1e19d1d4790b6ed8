import { expect, test } from 'vitest';
import { manifestSchema, readRelease } from '../../../../src/upstream/packages/npm.ts';

const read = (manifest: object, whole = {}) =>
  readRelease(manifestSchema.parse({ name: 'p', version: '1.0.0', ...manifest }), whole);

test('a bare manifest: what is absent is none or unknown', () => {
  expect(read({})).toEqual({
    name: 'p',
    version: '1.0.0',
    description: null,
    licence: null,
    dependencies: {},
    peerDependencies: {},
    engines: null,
    deprecated: null,
    homepage: null,
    repository: null,
    projectUrls: [],
    unpackedSizeBytes: null,
    fileCount: null,
    integrity: null,
    provenance: null,
  });
});

test.each([
  [
    { node: '>=8', npm: '*' },
    { node: '>=8', npm: '*' },
  ],
  [['node >= 0.8.0'], { node: '>= 0.8.0' }],
  [['node>=0.8', 'rhino', 7], { node: '>=0.8', rhino: '*' }],
  ['node >= 4', null],
  [{}, null],
  [[], null],
])('engines %o', (engines, expected) => {
  expect(read({ engines }).engines).toEqual(expected);
});

test.each([
  ['use open', 'use open'],
  [false, null],
  ['', null],
  [' ', null],
  [null, null],
  [true, 'deprecated without a message'],
])('deprecated %o', (deprecated, expected) => {
  expect(read({ deprecated }).deprecated).toBe(expected);
});

test.each([
  [{ type: 'git', url: 'git+https://github.com/a/b.git' }, 'https://github.com/a/b.git'],
  [{ type: 'git', url: 'git://github.com/a/b' }, 'git://github.com/a/b'],
  ['github:a/b', 'github:a/b'],
  [{ type: 'git' }, null],
  [7, null],
])('repository %o', (repository, expected) => {
  expect(read({ repository }).repository).toBe(expected);
});

test('dependencies of another form are none, and ranges of another type are left out', () => {
  expect(read({ dependencies: ['a'], peerDependencies: { a: '^1', b: 2 } })).toMatchObject({
    dependencies: {},
    peerDependencies: { a: '^1' },
  });
});

test('texts of another type are unknown, long ones are cut', () => {
  const long = read({ description: 'x'.repeat(5000), homepage: ['https://example.org'] });
  expect([long.description?.length, long.homepage]).toEqual([2000, null]);
});

test("the licence of the version goes before the package's", () => {
  expect(read({ license: 'MIT' }, { license: 'GPL-3.0' }).licence).toBe('MIT');
  expect(read({}, { license: 'GPL-3.0' }).licence).toBe('GPL-3.0');
});

test.each([{ name: 7 }, { version: undefined }])('%o is no manifest', (broken) => {
  expect(() => read(broken)).toThrow();
});
