import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { packagesPypi } from '../../../src/endpoints/packages/pypi.ts';
import { BadParameter, NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { fixture, usePackages } from '../../support/upstream/packages.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const { server, serve: serveAny, ask: askAny } = usePackages();
const ask = (query: Record<string, string>) => askAny(packagesPypi, query);
const project = JSON.parse(fixture('pypi/flask-thing.json'));
const DEPENDENTS = { dependentCount: 7, directDependentCount: 3, indirectDependentCount: 4 };
const PROVENANCE = {
  version: 1,
  attestation_bundles: [
    {
      publisher: {
        kind: 'GitHub',
        claims: null,
        repository: 'example/thing',
        workflow: 'release.yml',
        environment: '',
      },
      attestations: [],
    },
  ],
};
const OSV_RECORD = {
  id: 'GHSA-aaaa-bbbb-cccc',
  aliases: ['CVE-2026-0001'],
  published: '2026-01-01T00:00:00Z',
  severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' }],
};
const OSV_ONLY = { id: 'MAL-2026-9', published: '2026-02-01T00:00:00Z', summary: 'Taken over' };
const serve = (body: object) => serveAny('GET /pypi/flask-thing/json', body);

describe('packages/pypi', () => {
  test('a project in any spelling: licence expression, requirements, one vulnerability listed once', async () => {
    serve(project);
    serveAny('POST /v1/query', { vulns: [OSV_RECORD, OSV_ONLY] });
    serveAny('GET /v3alpha/systems/pypi/packages/flask-thing/versions/2.0.1:dependents', DEPENDENTS);
    serveAny('GET /integrity/flask-thing/2.0.1/flask_thing-2.0.1.tar.gz/provenance', PROVENANCE);
    const { source, sources, ...reply } = await ask({ name: 'Flask.__Thing' });
    expect(reply).toEqual({
      name: 'Flask_Thing',
      version: '2.0.1',
      publishedAt: Date.UTC(2026, 2, 4, 5, 6, 7) / 1000,
      requiresPython: '>=3.9',
      licence: 'MIT OR Apache-2.0',
      dependencies: [
        { name: 'Flask', extras: ['async'], specifier: '<4,>=2.2', extra: null, marker: null },
        { name: 'tomli', extras: [], specifier: '>=1.1.0', extra: null, marker: 'python_version < "3.11"' },
        { name: 'pytest', extras: [], specifier: '>=7', extra: 'test', marker: 'sys_platform != "win32"' },
      ],
      yanked: false,
      advisories: [
        {
          id: 'GHSA-aaaa-bbbb-cccc',
          aliases: ['CVE-2026-0001', 'PYSEC-2026-1'],
          summary: 'Thing leaks',
          severity: { label: 'high', score: 7.5, vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' },
          fixedIn: ['2.0.10', '2.1.0'],
          malicious: false,
          url: 'https://osv.dev/vulnerability/GHSA-aaaa-bbbb-cccc',
        },
        expect.objectContaining({ id: 'MAL-2026-9', malicious: true, summary: 'Taken over' }),
      ],
      advisoryCount: 2,
      summary: 'A thing for Flask',
      homepage: 'https://thing.example/',
      projectUrls: [
        { label: 'Changelog', url: 'https://thing.example/changes' },
        { label: 'Home-Page', url: 'https://thing.example/' },
      ],
      files: [
        { filename: 'flask_thing-2.0.1.tar.gz', kind: 'sdist', sizeBytes: 9000, sha256: 'cd'.repeat(32) },
        {
          filename: 'flask_thing-2.0.1-py3-none-any.whl',
          kind: 'bdist_wheel',
          sizeBytes: 4000,
          sha256: 'ab'.repeat(32),
        },
      ],
      fileCount: 2,
      totalSizeBytes: 13000,
      provenance: {
        filename: 'flask_thing-2.0.1.tar.gz',
        publishers: [{ kind: 'GitHub', repository: 'example/thing', workflow: 'release.yml' }],
        url: `${server().url}/integrity/flask-thing/2.0.1/flask_thing-2.0.1.tar.gz/provenance`,
      },
      dependents: { direct: 3, indirect: 4, total: 7 },
      missing: [],
    });
    expect(sources).toMatchObject([source, { name: 'OSV.dev' }, { name: 'deps.dev' }]);
    expect(source).toMatchObject({ name: 'PyPI', url: `${server().url}/pypi/flask-thing/json` });
  });

  test('without OSV every advisory of PyPI is there, its severity unknown; other parts that fail are null', async () => {
    serve(project);
    serveAny('POST /v1/query', '', 503);
    serveAny('GET /v3alpha/systems/pypi/packages/flask-thing/versions/2.0.1:dependents', '', 500);
    serveAny('GET /integrity/flask-thing/2.0.1/flask_thing-2.0.1.tar.gz/provenance', '{"attestation_bundles":[]}');
    const reply = await ask({ name: 'flask-thing' });
    expect(reply).toMatchObject({
      advisories: [{ id: 'GHSA-aaaa-bbbb-cccc', severity: { label: null, score: null, vector: null } }],
      advisoryCount: 1,
      dependents: null,
      provenance: null,
      sources: [reply.source],
    });
    expect(reply.missing).toEqual(
      expect.arrayContaining([
        { field: 'advisories[].severity', reason: 'osv: answered HTTP 503' },
        { field: 'dependents', reason: 'deps.dev: answered HTTP 500' },
        { field: 'provenance', reason: expect.stringMatching(/^pypi: answered JSON of an unexpected shape/) },
      ]),
    );
  });

  test('a release without files has no provenance, and none is asked for', async () => {
    serve({ ...project, urls: [] });
    serveAny('POST /v1/query', '{}');
    expect(await ask({ name: 'flask-thing' })).toMatchObject({
      files: [],
      fileCount: 0,
      totalSizeBytes: 0,
      provenance: null,
      missing: [],
    });
    expect(server().received.some(({ url }) => url.startsWith('/integrity'))).toBe(false);
  });

  test('members that the project lacks are null', async () => {
    const info = {
      name: 'flask-thing',
      version: '0.1',
      license: 'UNKNOWN',
      requires_python: '',
      home_page: 'UNKNOWN',
      yanked: true,
    };
    serve({ info, urls: [], vulnerabilities: [] });
    expect(await ask({ name: 'flask-thing' })).toMatchObject({
      publishedAt: null,
      requiresPython: null,
      licence: null,
      dependencies: null,
      yanked: true,
      summary: null,
      homepage: null,
    });
  });

  test('no dependencies and unknown dependencies differ', async () => {
    serve({ ...project, info: { ...project.info, requires_dist: [] } });
    expect(await ask({ name: 'flask-thing' })).toMatchObject({ dependencies: [] });
  });

  test('a missing project is 404', async () => {
    await expect(ask({ name: 'absent' })).rejects.toBeInstanceOf(NotFound);
  });

  test.each([
    ['for another project', { ...project, info: { ...project.info, name: 'other' } }],
    ['without its advisories', { ...project, vulnerabilities: undefined }],
  ])('an answer %s is 502', async (_what, body) => {
    serve(body);
    await expect(ask({ name: 'flask-thing' })).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test.each([{}, { name: '' }, { name: '-x' }, { name: 'a/../b' }, { name: 'a b' }])(
    '%o is 400 and no source is asked',
    async (query) => {
      await expect(ask(query as Record<string, string>)).rejects.toBeInstanceOf(BadParameter);
      expect(server().received).toEqual([]);
    },
  );
});
