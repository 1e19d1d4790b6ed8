import { beforeEach, describe, expect, test } from 'vitest';
import { packagesVulns } from '../../../src/endpoints/packages-vulns.ts';
import { BadParameter, UpstreamFailed } from '../../../src/errors.ts';
import { fixture, usePackages } from '../../support/upstream/packages.ts';

const { server, serve, ask: askAny } = usePackages();
const ask = (query: Record<string, string>) => askAny(packagesVulns, query);
const bodies = () => server().received.map(({ body }) => JSON.parse(body));

describe('packages/vulns', () => {
  describe('two pages', () => {
    beforeEach(() => {
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
            fixedIn: ['1.9.9', '2.1.1'],
            publishedAt: Date.UTC(2026, 2, 31) / 1000,
            modifiedAt: Date.UTC(2026, 3, 3) / 1000,
            url: 'https://osv.dev/vulnerability/GHSA-aaaa-bbbb-cccc',
          },
          {
            id: 'MAL-2026-1',
            aliases: [],
            summary: 'Malicious code in @example/modern (npm)',
            severity: { label: null, score: null, vector: null },
            fixedIn: [],
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
      const reply = await ask({ name: '@example/modern', ecosystem: 'npm', version: 'v2.0.0' });
      expect(reply).toMatchObject({ version: '2.0.0', advisories: [{ fixedIn: ['2.1.1'] }, {}] });
      expect(bodies()[0]).toMatchObject({ version: '2.0.0' });
    });
  });

  test('endless pages are 502, not a partial answer', async () => {
    server().answers['POST /v1/query'] = ({ body }) => ({
      body: JSON.stringify({ next_page_token: `${JSON.parse(body).page_token ?? ''}x` }),
    });
    await expect(ask({ name: 'p' })).rejects.toBeInstanceOf(UpstreamFailed);
    expect(server().received).toHaveLength(10);
  });

  test('nothing known', async () => {
    serve('POST /v1/query', '{}');
    expect(await ask({ name: 'p' })).toMatchObject({ count: 0, advisories: [] });
  });

  test.each([
    ['pypi', 'Flask_Thing', '1.0', 'PyPI', 'flask-thing', '1.0'],
    ['go', 'github.com/gogo/protobuf', 'v1.3.1', 'Go', 'github.com/gogo/protobuf', '1.3.1'],
    ['crates.io', 'regex', '1.5.4', 'crates.io', 'regex', '1.5.4'],
    ['maven', 'g:a', '1.0.Final', 'Maven', 'g:a', '1.0.Final'],
    ['rubygems', 'rails', '7.0.1', 'RubyGems', 'rails', '7.0.1'],
    ['nuget', 'Newtonsoft.Json', '12.0.1', 'NuGet', 'Newtonsoft.Json', '12.0.1'],
    ['packagist', 'Guzzlehttp/Guzzle', '7.4.3', 'Packagist', 'guzzlehttp/guzzle', '7.4.3'],
  ])('%s %s %s is sent in OSV’s terms', async (ecosystem, name, version, theirs, asName, asVersion) => {
    serve('POST /v1/query', '{}');
    expect(await ask({ ecosystem, name, version })).toMatchObject({ ecosystem, name: asName, version: asVersion });
    expect(bodies()).toEqual([{ package: { name: asName, ecosystem: theirs }, version: asVersion }]);
  });

  test.each([
    [{}, 'name: '],
    [{ name: '' }, 'name: '],
    [{ name: 'a b' }, 'name: an npm package name'],
    [{ name: 'lodash', ecosystem: 'maven' }, 'name: group and artifact'],
    [
      { name: 'lodash', ecosystem: 'NPM' },
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
