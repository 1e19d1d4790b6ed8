import { describe, expect, test } from 'vitest';
import { packagesPypi } from '../../../src/endpoints/packages-pypi.ts';
import { BadParameter, NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { fixture, usePackages } from '../../support/upstream/packages.ts';

const { server, serve: serveAny, ask: askAny } = usePackages();
const ask = (query: Record<string, string>) => askAny(packagesPypi, query);
const project = JSON.parse(fixture('pypi/flask-thing.json'));
const serve = (body: object) => serveAny('GET /pypi/flask-thing/json', body);

describe('packages/pypi', () => {
  test('a project in any spelling: licence expression, requirements, one vulnerability listed once', async () => {
    serve(project);
    const { source, ...reply } = await ask({ name: 'Flask.__Thing' });
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
          fixedIn: ['2.0.10', '2.1.0'],
        },
      ],
      summary: 'A thing for Flask',
      homepage: 'https://thing.example/',
    });
    expect(source).toMatchObject({ name: 'PyPI', url: `${server().url}/pypi/flask-thing/json` });
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
