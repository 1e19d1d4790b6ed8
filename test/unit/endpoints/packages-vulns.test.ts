import { beforeEach, describe, expect, test } from 'vitest';
import { packagesVulns } from '../../../src/endpoints/packages/vulns.ts';
import { BadParameter, NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { fixture, usePackages } from '../../support/upstream/packages.ts';

const { server, serve, ask: askAny } = usePackages();
const ask = (query: Record<string, string>) => askAny(packagesVulns, query);
const bodies = () => server().received.flatMap(({ method, body }) => (method === 'POST' ? [JSON.parse(body)] : []));
/** Makes the npm registry list a package; without a version its latest one. */
const onNpm = (name: string, version = 'latest') =>
  serve(`GET /${name.replace('/', '%2f')}/${version}`, { name, version: '2.1.0' });

const AFFECTED = [
  { introduced: '1.0.0', fixed: '1.9.9', lastAffected: null },
  { introduced: '2.0.0', fixed: '2.1.1', lastAffected: null },
];

/** Makes NuGet list a package, with a manifest that spells its id. */
function nugetLists(id: string, versions: string[]): void {
  const base = `GET /v3-flatcontainer/${id.toLowerCase()}`;
  serve(`${base}/index.json`, { versions });
  const manifest = `<?xml version="1.0"?><package><metadata><id>${id}</id></metadata></package>`;
  for (const version of versions) serve(`${base}/${version}/${id.toLowerCase()}.nuspec`, manifest);
}

/** deps.dev's system, name and version for what only deps.dev is asked about. */
const DEPS_DEV = [
  ['go', 'github.com/gogo/protobuf', 'v1.3.1'],
  ['cargo', 'regex', '1.5.4'],
  ['maven', 'g:a', '1.0.Final'],
  ['rubygems', 'rails', '7.0.1'],
] as const;

describe('packages/vulns', () => {
  describe('two pages', () => {
    beforeEach(() => {
      onNpm('@example/modern');
      server().answers['POST /v1/query'] = ({ body }) => ({
        body: fixture(JSON.parse(body).page_token === 'second' ? 'osv/page-2.json' : 'osv/page-1.json'),
      });
    });

    test('all of them, each vulnerability once, newest first', async () => {
      const { source, ...reply } = await ask({ name: '@example/modern' });
      expect(reply).toEqual({
        ecosystem: 'npm',
        name: '@example/modern',
        version: null,
        known: true,
        listed: true,
        count: 2,
        advisories: [
          {
            id: 'GHSA-aaaa-bbbb-cccc',
            aliases: ['CVE-2026-0001'],
            summary: 'Thing leaks',
            severity: {
              label: 'medium',
              score: 5.4,
              vector: 'CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N',
            },
            affected: AFFECTED,
            affectedVersions: [],
            fixedIn: ['1.9.9', '2.1.1'],
            malicious: false,
            publishedAt: Date.UTC(2026, 2, 31) / 1000,
            modifiedAt: Date.UTC(2026, 3, 3) / 1000,
            url: 'https://osv.dev/vulnerability/GHSA-aaaa-bbbb-cccc',
          },
          {
            id: 'MAL-2026-1',
            aliases: [],
            summary: 'Malicious code in @example/modern (npm)',
            severity: { label: null, score: null, vector: null },
            affected: [],
            affectedVersions: ['0.0.1'],
            fixedIn: [],
            malicious: true,
            publishedAt: Date.UTC(2025, 0, 1) / 1000,
            modifiedAt: Date.UTC(2025, 0, 1) / 1000,
            url: 'https://osv.dev/vulnerability/MAL-2026-1',
          },
        ],
      });
      expect(source).toMatchObject({
        name: 'OSV.dev',
        url: `${server().url}/v1/query`,
        licence: expect.stringContaining('CC BY 4.0'),
      });
      const asked = { package: { name: '@example/modern', ecosystem: 'npm' } };
      expect(bodies()).toEqual([asked, { ...asked, page_token: 'second' }]);
    });

    test('one version', async () => {
      onNpm('@example/modern', '2.0.0');
      const reply = await ask({ name: '@example/modern', ecosystem: 'npm', version: 'v2.0.0' });
      expect(reply).toMatchObject({ version: '2.0.0', advisories: [{ fixedIn: ['2.1.1'] }, {}] });
      expect(bodies()[0]).toMatchObject({ version: '2.0.0' });
    });
  });

  test('endless pages are 502, not a partial answer', async () => {
    server().answers['POST /v1/query'] = ({ body }) => ({
      body: JSON.stringify({ next_page_token: `${JSON.parse(body).page_token ?? ''}x` }),
    });
    onNpm('p');
    await expect(ask({ name: 'p' })).rejects.toBeInstanceOf(UpstreamFailed);
    expect(bodies()).toHaveLength(10);
  });

  test('a package without advisories is known, and has none', async () => {
    serve('POST /v1/query', '{}');
    onNpm('p');
    expect(await ask({ name: 'p' })).toMatchObject({ known: true, listed: true, count: 0, advisories: [] });
  });

  test.each([
    [{ name: 'no-such-package' }, 'npm has no package no-such-package'],
    [{ name: 'p', version: '9.9.9' }, 'npm has no version 9.9.9 of p, or no such package'],
    [{ name: 'no-such', ecosystem: 'pypi' }, 'pypi has no package no-such'],
    [{ name: 'no-such', ecosystem: 'nuget' }, 'nuget has no package no-such'],
    [{ name: 'no/such', ecosystem: 'packagist' }, 'packagist has no package no/such'],
    [{ name: 'no:such', ecosystem: 'maven' }, 'maven has no package no:such'],
  ])('what does not exist is 404, never an all-clear: %o', async (query, message) => {
    serve('POST /v1/query', '{}');
    onNpm('p');
    const refused = ask(query as Record<string, string>);
    await expect(refused).rejects.toBeInstanceOf(NotFound);
    await expect(refused).rejects.toThrow(message);
  });

  test('a version that does not exist is 404, although it lies in a range of affected versions', async () => {
    onNpm('@example/modern');
    const { vulns } = JSON.parse(fixture('osv/page-1.json'));
    serve('POST /v1/query', { vulns });
    await expect(ask({ name: '@example/modern', version: '2.0.999' })).rejects.toBeInstanceOf(NotFound);
  });

  test('a malicious package that its registry removed is known by its advisories', async () => {
    serve('POST /v1/query', fixture('osv/page-2.json'));
    expect(await ask({ name: '@example/modern' })).toMatchObject({ known: true, listed: false, count: 2 });
    expect(await ask({ name: '@example/modern', version: '0.0.1' })).toMatchObject({ known: true, listed: false });
    await expect(ask({ name: '@example/modern', version: '0.0.2' })).rejects.toBeInstanceOf(NotFound);
  });

  test.each([
    ['npm', 'p', 'GET /v3/systems/npm/packages/p', { packageKey: { system: 'NPM', name: 'p' }, versions: [] }],
    ['pypi', 'p', 'GET /v3/systems/pypi/packages/p', { packageKey: { system: 'PYPI', name: 'p' }, versions: [] }],
  ])('%s: deps.dev is asked when the registry does not answer', async (ecosystem, name, line, answer) => {
    serve('POST /v1/query', '{}');
    serve(ecosystem === 'npm' ? 'GET /p/latest' : 'GET /pypi/p/json', '', 500);
    serve(line, answer);
    expect(await ask({ ecosystem, name })).toMatchObject({ known: true, count: 0 });
    serve(line, '', 500);
    await expect(ask({ ecosystem, name: 'q' })).rejects.toBeInstanceOf(NotFound);
  });

  test('no registry answers: 502 that names both, not an all-clear', async () => {
    serve('POST /v1/query', '{}');
    serve('GET /p/latest', '', 500);
    serve('GET /v3/systems/npm/packages/p', '', 503);
    await expect(ask({ name: 'p' })).rejects.toThrow('registry: npm: answered HTTP 500; deps.dev: answered HTTP 503');
  });

  test('a registry that answers for another package is 502', async () => {
    serve('POST /v1/query', '{}');
    serve('GET /p/latest', { name: 'another', version: '1.0.0' });
    serve('GET /v3/systems/npm/packages/p', { packageKey: { name: 'another' } });
    await expect(ask({ name: 'p' })).rejects.toThrow('answered for another package');
  });

  test('NuGet ignores letter case and advisories do not: OSV is asked in the author’s spelling', async () => {
    serve('POST /v1/query', '{}');
    nugetLists('Newtonsoft.Json', ['12.0.1', '13.0.1']);
    expect(await ask({ ecosystem: 'nuget', name: 'NEWTONSOFT.json' })).toMatchObject({ name: 'Newtonsoft.Json' });
    expect(bodies()).toEqual([{ package: { name: 'Newtonsoft.Json', ecosystem: 'NuGet' } }]);
    expect(await ask({ ecosystem: 'nuget', name: 'newtonsoft.json', version: '12.0.1.0' })).toMatchObject({
      known: true,
    });
    await expect(ask({ ecosystem: 'nuget', name: 'newtonsoft.json', version: '12.0.2' })).rejects.toBeInstanceOf(
      NotFound,
    );
  });

  test('a crate is looked up in the spelling of its registry, under which its advisories are filed', async () => {
    serve('POST /v1/query', '{}');
    serve('GET /v3/systems/cargo/packages/openssl_src', { packageKey: { system: 'CARGO', name: 'openssl-src' } });
    expect(await ask({ ecosystem: 'crates.io', name: 'openssl_src' })).toMatchObject({
      name: 'openssl-src',
      known: true,
    });
    expect(bodies()).toEqual([{ package: { name: 'openssl-src', ecosystem: 'crates.io' } }]);
  });

  test('releases of the Go language itself are in no registry, and the answer says so', async () => {
    serve('POST /v1/query', '{}');
    expect(await ask({ ecosystem: 'go', name: 'stdlib', version: '1.22.1' })).toMatchObject({
      known: null,
      listed: null,
      count: 0,
    });
    expect(server().received.map(({ method }) => method)).toEqual(['POST']);
  });

  test.each([
    ['pypi', 'Flask_Thing', '1.0', 'PyPI', 'flask-thing', '1.0'],
    ['go', 'github.com/gogo/protobuf', 'v1.3.1', 'Go', 'github.com/gogo/protobuf', '1.3.1'],
    ['crates.io', 'regex', '1.5.4', 'crates.io', 'regex', '1.5.4'],
    ['maven', 'g:a', '1.0.Final', 'Maven', 'g:a', '1.0.Final'],
    ['rubygems', 'rails', '7.0.1', 'RubyGems', 'rails', '7.0.1'],
    ['nuget', 'Newtonsoft.Json', '12.0.1', 'NuGet', 'Newtonsoft.Json', '12.0.1'],
    ['packagist', 'Guzzlehttp/Guzzle', '7.4.3', 'Packagist', 'guzzlehttp/guzzle', '7.4.3'],
    ['NPM', 'p', '1.0.0', 'npm', 'p', '1.0.0'],
    ['PyPI', 'flask-thing', '1.0', 'PyPI', 'flask-thing', '1.0'],
  ])('%s %s %s is looked up and sent in OSV’s terms', async (ecosystem, name, version, theirs, asName, asVersion) => {
    serve('POST /v1/query', '{}');
    onNpm('p', '1.0.0');
    serve('GET /pypi/flask-thing/1.0/json', { info: { name: 'Flask-Thing' } });
    nugetLists('Newtonsoft.Json', ['12.0.1']);
    serve('GET /p2/guzzlehttp/guzzle.json', { packages: { 'guzzlehttp/guzzle': [{ version: 'v7.4.3' }] } });
    for (const [system, their, exact] of DEPS_DEV) {
      const path = `GET /v3/systems/${system}/packages/${encodeURIComponent(their)}/versions/${exact}`;
      serve(path, { versionKey: { name: their, version: exact } });
    }
    expect(await ask({ ecosystem, name, version })).toMatchObject({
      ecosystem: ecosystem.toLowerCase(),
      name: asName,
      version: asVersion,
      known: true,
      listed: true,
      count: 0,
    });
    expect(bodies()).toEqual([{ package: { name: asName, ecosystem: theirs }, version: asVersion }]);
  });

  test.each([
    [{}, 'name: '],
    [{ name: '' }, 'name: '],
    [{ name: 'a b' }, 'name: an npm package name'],
    [{ name: 'lodash', ecosystem: 'maven' }, 'name: group and artifact'],
    [
      { name: 'lodash', ecosystem: 'NPMX' },
      'ecosystem: one of npm, pypi, go, crates.io, maven, rubygems, nuget, packagist',
    ],
    [{ name: 'lodash', ecosystem: '' }, 'ecosystem: '],
    [{ name: 'lodash', version: '^4.0.0' }, 'version: one exact version'],
    [{ name: 'lodash', version: 'latest' }, 'version: one exact version'],
    [{ name: 'lodash', version: '' }, 'version: one exact version'],
    [{ name: 'a b', version: '*' }, 'name: an npm package name such as express or @babel/core; version: '],
  ])('%o is 400 and no source is asked', async (query, message) => {
    const refused = ask(query as Record<string, string>);
    await expect(refused).rejects.toBeInstanceOf(BadParameter);
    await expect(refused).rejects.toThrow(message);
    expect(server().received).toEqual([]);
  });
});
