import { describe, expect, test } from 'vitest';
import { ECOSYSTEMS, type EcosystemName } from '../../../../src/upstream/packages/ecosystems.ts';

test('the eight promised ecosystems have the names that OSV knows', () => {
  expect(Object.entries(ECOSYSTEMS).map(([ours, { osv }]) => [ours, osv])).toEqual([
    ['npm', 'npm'],
    ['pypi', 'PyPI'],
    ['go', 'Go'],
    ['crates.io', 'crates.io'],
    ['maven', 'Maven'],
    ['rubygems', 'RubyGems'],
    ['nuget', 'NuGet'],
    ['packagist', 'Packagist'],
  ]);
});

const NAMES: Record<EcosystemName, { good: (string | [string, string])[]; bad: string[] }> = {
  npm: {
    good: ['express', '@babel/core', 'JSONStream', 'lodash.merge', 'a'.repeat(214)],
    bad: [
      '.x',
      '_x',
      'a b',
      'a/b',
      '@a/b/c',
      '@/b',
      '@a/',
      '../x',
      '@a/..',
      'a?b',
      'a#b',
      'node_modules',
      'a'.repeat(215),
      ' x',
    ],
  },
  pypi: {
    good: [
      ['Flask_SQLAlchemy', 'flask-sqlalchemy'],
      ['zope.interface', 'zope-interface'],
      ['a--_.b', 'a-b'],
      'x',
      '123bla',
    ],
    bad: ['-x', 'x-', 'a b', 'a/b', '..', 'ä', 'a'.repeat(215), 'a\n'],
  },
  go: {
    good: ['golang.org/x/net', 'github.com/gogo/protobuf', 'stdlib', 'toolchain', 'gopkg.in/yaml.v3', 'example.com'],
    bad: ['net/http', 'x', '/a.b/c', 'a.b/', 'a.b//c', 'a.b/../c', 'a.b/./c', 'https://a.b/c', 'a b.c'],
  },
  'crates.io': { good: ['tokio', 'crossbeam-utils', 'Inflector'], bad: ['1x', '-x', 'a.b', 'a/b', 'a'.repeat(65)] },
  maven: {
    good: ['org.apache.logging.log4j:log4j-core', 'junit:junit'],
    bad: ['log4j', ':a', 'a:', 'a:b:c', 'a b:c', 'a/b:c'],
  },
  rubygems: { good: ['rails', 'active_support', 'net-http2', '2d'], bad: ['.x', '-x', '123', 'a/b', 'a b'] },
  nuget: { good: ['Newtonsoft.Json', 'xunit', 'a-b_c.d'], bad: ['.x', 'x.', 'a..b', 'a b', 'a/b', 'a'.repeat(101)] },
  packagist: {
    good: ['guzzlehttp/guzzle', ['Monolog/Monolog', 'monolog/monolog'], 'a/b--c'],
    bad: ['guzzle', 'a/', '/b', 'a/b/c', 'a//b', 'a b/c', 'a---b/c', `${'a'.repeat(200)}!/x`],
  },
};

describe.each(Object.entries(NAMES) as [EcosystemName, (typeof NAMES)[EcosystemName]][])(
  'names of %s',
  (ecosystem, { good, bad }) => {
    test.each(good.map((entry) => (typeof entry === 'string' ? [entry, entry] : entry) as [string, string]))(
      '%s is asked for as %s',
      (text, normal) => {
        expect(ECOSYSTEMS[ecosystem].name(text)).toBe(normal);
      },
    );
    test.each([...bad, ''])('%o is refused', (text) => {
      expect(ECOSYSTEMS[ecosystem].name(text)).toBeNull();
    });
  },
);

const VERSIONS: Record<EcosystemName, { good: (string | [string, string])[]; bad: string[] }> = {
  npm: { good: ['1.2.3', '1.0.0-rc.1+b', ['v1.2.3', '1.2.3']], bad: ['1.2', 'x', '1.2.3.4'] },
  pypi: { good: ['1.0', '21.11b0', '1!2.0.post1'], bad: ['1.*', '1.0-'] },
  go: {
    good: [
      ['v1.9.2', '1.9.2'],
      'v0.0.0-20200622213623-75b288015ac9'.slice(1),
      '1.20',
      '1.21rc1',
      ['go1.20.3', '1.20.3'],
    ],
    bad: ['2.1', 'v1'],
  },
  'crates.io': { good: ['0.2.7'], bad: ['0.2'] },
  maven: { good: ['2.14.1', '1.0.0.Final', 'r09', '31.1-jre'], bad: ['[1.0,2.0)', '1.0,2.0', 'LATEST', 'RELEASE'] },
  rubygems: { good: ['1.18.2', '1.0.0.pre1'], bad: ['pre'] },
  nuget: { good: ['12.0.1', '4.3.0.1-beta2'], bad: ['beta'] },
  packagist: { good: ['6.5.6', 'v7.4.3'], bad: ['dev-main'] },
};
/** Refused everywhere: a range, a wildcard or a tag is not one version. */
const RANGES = [
  '^1.0.0',
  '~1.2',
  '>=1.0',
  '<2',
  '=1.0.0',
  '1.0 - 2.0',
  '1.0||2.0',
  '*',
  '1.x',
  '1.2.*',
  'latest',
  '',
  ' 1.0',
  '1.0 ',
  `1.${'0'.repeat(100)}`,
];

describe.each(Object.entries(VERSIONS) as [EcosystemName, (typeof VERSIONS)[EcosystemName]][])(
  'versions of %s',
  (ecosystem, { good, bad }) => {
    test.each(good.map((entry) => (typeof entry === 'string' ? [entry, entry] : entry) as [string, string]))(
      '%s is asked for as %s',
      (text, exact) => {
        expect(ECOSYSTEMS[ecosystem].version(text)).toBe(exact);
      },
    );
    test.each([...bad, ...RANGES])('%o is refused', (text) => {
      expect(ECOSYSTEMS[ecosystem].version(text)).toBeNull();
    });
  },
);
