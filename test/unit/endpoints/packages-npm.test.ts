import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { packagesNpm } from '../../../src/endpoints/packages/npm.ts';
import { BadParameter, NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { registryUrl } from '../../../src/upstream/packages/npm-registry.ts';
import { fixture, usePackages } from '../../support/upstream/packages.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const { server, serve, open, ask: askAny } = usePackages();
const ask = (query: Record<string, string>) => askAny(packagesNpm, query);
const DEPENDENTS = { dependentCount: 7, directDependentCount: 3, indirectDependentCount: 4 };

describe('packages/npm', () => {
  test('a scoped package, with downloads', async () => {
    serve('GET /@example%2fmodern', fixture('npm/modern.json'));
    serve('GET /downloads/point/last-week/@example/modern', fixture('npm/downloads-modern.json'));
    serve('POST /v1/query', fixture('osv/page-2.json'));
    serve('GET /v3alpha/systems/npm/packages/%40example%2Fmodern/versions/2.1.0:dependents', DEPENDENTS);
    const askedAt = Math.floor(Date.now() / 1000);
    const { source, sources, ...reply } = await ask({ name: '@example/modern' });
    expect(reply).toEqual({
      name: '@example/modern',
      version: '2.1.0',
      publishedAt: Date.UTC(2026, 1, 3, 4, 5, 6) / 1000,
      licence: 'MIT OR Apache-2.0',
      weeklyDownloads: 1234567,
      dependencies: { '@example/base': '^1.0.0', plain: '~2.3.4' },
      peerDependencies: { react: '>=18' },
      engines: { node: '>=20' },
      deprecated: null,
      description: 'A modern package',
      homepage: 'https://modern.example/',
      repository: 'https://code.example/modern.git',
      projectUrls: [
        { label: 'homepage', url: 'https://modern.example/' },
        { label: 'repository', url: 'https://code.example/modern' },
        { label: 'bugs', url: 'https://code.example/modern/issues' },
        { label: 'funding', url: 'https://fund.example/modern' },
      ],
      unpackedSizeBytes: 12345,
      fileCount: 7,
      integrity: 'sha512-AAAA',
      provenance: {
        predicateType: 'https://slsa.dev/provenance/v1',
        url: 'https://registry.example/-/npm/v1/attestations/@example%2fmodern@2.1.0',
      },
      advisories: [
        {
          id: 'CVE-2026-0001',
          aliases: [],
          summary: null,
          severity: { label: null, score: null, vector: null },
          fixedIn: [],
          malicious: false,
          url: 'https://osv.dev/vulnerability/CVE-2026-0001',
        },
        expect.objectContaining({ id: 'MAL-2026-1', malicious: true }),
      ],
      advisoryCount: 2,
      dependents: { direct: 3, indirect: 4, total: 7 },
      missing: [],
    });
    expect(sources).toMatchObject([source, { name: 'OSV.dev' }, { name: 'deps.dev', licence: expect.any(String) }]);
    expect(JSON.parse(server().received.find(({ method }) => method === 'POST')?.body ?? '')).toEqual({
      package: { name: '@example/modern', ecosystem: 'npm' },
      version: '2.1.0',
    });
    expect(source).toEqual({
      name: 'npm registry',
      url: `${server().url}/@example%2fmodern`,
      retrievedAt: expect.toSatisfy((at: number) => at >= askedAt && at <= Date.now() / 1000),
    });
  });

  test('a package in old forms, a prerelease, without a time or downloads', async () => {
    serve('GET /legacy', fixture('npm/legacy.json'));
    expect(await ask({ name: 'legacy' })).toMatchObject({
      version: '0.1.0-beta',
      publishedAt: null,
      licence: '(MIT OR GPL-2.0)',
      weeklyDownloads: null,
      engines: { node: '>= 0.4.x' },
      deprecated: 'no longer maintained',
      dependencies: {},
      repository: 'code.example/legacy',
    });
  });

  test.each([
    ['missing', 'absent', '{}', 404],
    ['unpublished', 'gone', fixture('npm/unpublished.json'), 200],
    ['without a latest version', 'legacy', { name: 'legacy', 'dist-tags': {}, versions: {} }, 200],
    [
      'whose latest version is not there',
      'legacy',
      { name: 'legacy', 'dist-tags': { latest: 'toString' }, versions: {} },
      200,
    ],
  ])('one %s is 404', async (_what, name, body, status) => {
    serve(`GET /${name}`, body, status);
    await expect(ask({ name })).rejects.toBeInstanceOf(NotFound);
  });

  test.each([
    ['for another package', { ...JSON.parse(fixture('npm/legacy.json')), name: 'other' }],
    ['without versions', { name: 'legacy', 'dist-tags': { latest: '1.0.0' } }],
    ['with a version of another shape', { name: 'legacy', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': 7 } }],
  ])('an answer %s is 502', async (_what, body) => {
    serve('GET /legacy', body);
    await expect(ask({ name: 'legacy' })).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('above the size limit: the latest version by itself, its time from deps.dev', async () => {
    const { versions } = JSON.parse(fixture('npm/modern.json'));
    serve('GET /@example%2fmodern', ' '.repeat(5 * 1024 * 1024));
    serve('GET /@example%2fmodern/latest', versions['2.1.0']);
    serve('GET /v3/systems/npm/packages/%40example%2Fmodern/versions/2.1.0', fixture('npm/depsdev-modern.json'));
    expect(await ask({ name: '@example/modern' })).toMatchObject({
      version: '2.1.0',
      publishedAt: Date.UTC(2026, 1, 3, 4, 5, 6) / 1000,
      engines: { node: '>=20' },
    });
    await ask({ name: '@example/modern' });
    expect(server().received.filter(({ url }) => url === '/@example%2fmodern')).toHaveLength(1);
    serve('GET /huge', ' '.repeat(5 * 1024 * 1024));
    serve('GET /huge/latest', ' '.repeat(5 * 1024 * 1024));
    await expect(ask({ name: 'huge' })).rejects.toBeInstanceOf(UpstreamFailed);
    serve('GET /plain', ' '.repeat(5 * 1024 * 1024));
    await expect(ask({ name: 'plain' })).rejects.toBeInstanceOf(NotFound);
  });

  test('a source of a part that fails costs that part alone, and the reason is given', async () => {
    serve('GET /legacy', fixture('npm/legacy.json'));
    serve('GET /downloads/point/last-week/legacy', '', 500);
    serve('POST /v1/query', '{"surprise":true}');
    serve('GET /v3alpha/systems/npm/packages/legacy/versions/0.1.0-beta:dependents', '', 429);
    const reply = await ask({ name: 'legacy' });
    expect(reply).toMatchObject({
      version: '0.1.0-beta',
      weeklyDownloads: null,
      advisories: null,
      advisoryCount: null,
      dependents: null,
      provenance: null,
      unpackedSizeBytes: null,
      fileCount: null,
      integrity: null,
      sources: [reply.source],
    });
    expect(reply.missing).toEqual(
      expect.arrayContaining([
        { field: 'weeklyDownloads', reason: 'npm-downloads: answered HTTP 500' },
        { field: 'advisories', reason: expect.stringMatching(/^osv: answered JSON of an unexpected shape/) },
        { field: 'dependents', reason: 'deps.dev: answered HTTP 429' },
      ]),
    );
  });

  test('a version without advisories has none; one that nobody counts has no downloads and no dependents', async () => {
    serve('GET /legacy', fixture('npm/legacy.json'));
    serve('POST /v1/query', '{}');
    expect(await ask({ name: 'legacy' })).toMatchObject({
      advisories: [],
      advisoryCount: 0,
      dependents: null,
      weeklyDownloads: null,
      missing: [],
    });
  });

  test('asking for a name that does not exist costs one request, and none when it is asked again', async () => {
    await expect(ask({ name: 'absent' })).rejects.toBeInstanceOf(NotFound);
    await expect(ask({ name: 'absent' })).rejects.toBeInstanceOf(NotFound);
    expect(server().received.map(({ url }) => url)).toEqual(['/absent']);
  });

  test('downloads of another package are ignored', async () => {
    serve('GET /legacy', fixture('npm/legacy.json'));
    serve('GET /downloads/point/last-week/legacy', fixture('npm/downloads-modern.json'));
    expect(await ask({ name: 'legacy' })).toMatchObject({ weeklyDownloads: null });
  });

  test('is requested once for a while, also by two callers at the same time', async () => {
    serve('GET /legacy', fixture('npm/legacy.json'));
    await Promise.all([ask({ name: 'legacy' }), ask({ name: 'legacy' })]);
    await ask({ name: 'legacy' });
    expect(server().received.filter(({ url }) => url === '/legacy')).toHaveLength(1);
  });

  test.each([{}, { name: '' }, { name: 'a b' }, { name: '../x' }, { name: 'a/b' }, { name: 'x?y=1' }])(
    '%o is 400 and no source is asked',
    async (query) => {
      await expect(ask(query)).rejects.toBeInstanceOf(BadParameter);
      expect(server().received).toEqual([]);
    },
  );

  test('credentials in the configured base URL go to the registry and nowhere else', async () => {
    serve('GET /sub/legacy', fixture('npm/legacy.json'));
    const npmUrl = `${server().url.replace('//', '//user:secret@')}/sub`;
    const reply = await askAny(packagesNpm, { name: 'legacy' }, open({ npmUrl }));
    expect(reply.source).toMatchObject({ url: `${server().url}/sub/legacy` });
    expect(server().received.map(({ headers }) => headers.authorization?.slice(0, 5))).toContain('Basic');
  });

  test('without a configured registry it asks the client library’s default one', async () => {
    expect(new URL(await registryUrl(null)).protocol).toBe('https:');
    expect(await registryUrl('http://127.0.0.1:9/sub/')).toBe('http://127.0.0.1:9/sub');
  });
});
