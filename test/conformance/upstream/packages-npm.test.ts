import { describe, expect, test } from 'vitest';
import { NotFound } from '../../../src/errors.ts';
import { at, SAMPLES_PRESENT, samplesOf, usePackages } from '../../support/upstream/packages.ts';
import { PATIENT_MS } from '../../support/upstream/patience.ts';
import { afterWholeSuite } from '../../support/whole-suite.ts';

const { serve, server, sources } = usePackages({ timeoutMs: PATIENT_MS });
const { sample, unused } = samplesOf('npm');

describe.skipIf(!SAMPLES_PRESENT)('npm’s source over recorded answers (skipped where the samples are absent)', () => {
  test.each([
    [
      'packument-full-opn-deprecated',
      'opn',
      '6.0.0',
      '2019-03-26T17:51:34Z',
      {
        licence: 'MIT',
        engines: { node: '>=8' },
        deprecated: 'The package has been renamed to `open`',
        dependencies: { 'is-wsl': '^1.1.0' },
      },
    ],
    [
      'packument-full-resolve-url-deprecated',
      'resolve-url',
      '0.2.1',
      '2014-02-25T18:48:50Z',
      { deprecated: 'https://github.com/lydell/resolve-url#deprecated', engines: null, dependencies: {} },
    ],
    [
      'packument-full-os-homedir-deprecated',
      'os-homedir',
      '2.0.0',
      '2018-11-08T11:18:38Z',
      { deprecated: expect.stringContaining('os'), homepage: 'https://github.com/sindresorhus/os-homedir#readme' },
    ],
    [
      'packument-full-create-react-class-deprecated-false',
      'create-react-class',
      '15.7.0',
      '2020-10-15T22:27:36Z',
      { deprecated: null, repository: 'https://github.com/facebook/react.git' },
    ],
    ['packument-full-deep-is-license-object', 'deep-is', '0.1.3', '2014-08-24T20:02:55Z', { licence: 'MIT' }],
    ['packument-full-md5-o-matic-licenses-array', 'md5-o-matic', '0.1.1', '2014-11-08T18:26:31Z', { licence: 'MIT' }],
    [
      'packument-full-path-is-inside-license-expr',
      'path-is-inside',
      '1.0.2',
      '2016-09-10T23:35:10Z',
      { licence: '(WTFPL OR MIT)' },
    ],
    [
      'packument-full-querystring-es3-tags',
      'querystring-es3',
      '0.2.1',
      '2014-10-13T19:06:08Z',
      { licence: 'MIT', engines: { node: '>=0.4.x' } },
    ],
    [
      'packument-full-ansi-html-engines-array',
      'ansi-html',
      '0.0.7',
      '2017-01-02T04:15:30Z',
      { engines: { node: '>= 0.8.0' }, licence: 'Apache-2.0' },
    ],
    [
      'packument-full-@types-eslint-scope',
      '@types/eslint-scope',
      '3.7.0',
      '2018-02-18T01:54:10Z',
      { dependencies: { '@types/eslint': '*', '@types/estree': '*' } },
    ],
    [
      'packument-full-@types-babel__template',
      '@types/babel__template',
      '7.0.3',
      '2020-09-24T20:50:02Z',
      {
        description: 'TypeScript definitions for @babel/template',
        projectUrls: [{ label: 'repository', url: 'https://github.com/DefinitelyTyped/DefinitelyTyped' }],
        unpackedSizeBytes: expect.any(Number),
        fileCount: expect.any(Number),
        integrity: expect.stringMatching(/^sha512-/),
        provenance: null,
      },
    ],
    [
      'docs-full-tiny-tarball',
      'tiny-tarball',
      '1.0.0',
      '2015-03-24T00:12:24Z',
      { licence: 'ISC', peerDependencies: {} },
    ],
    ['docs-abbrev-tiny-tarball', 'tiny-tarball', '1.0.0', null, { licence: null, description: null }],
    [
      'packument-abbrev-opn-deprecated',
      'opn',
      '6.0.0',
      null,
      { deprecated: 'The package has been renamed to `open`', licence: null },
    ],
    ['packument-abbrev-os-homedir-deprecated', 'os-homedir', '2.0.0', null, { engines: { node: '>=0.10.0' } }],
    ['packument-abbrev-@types-eslint-scope', '@types/eslint-scope', '3.7.0', null, {}],
    ['packument-abbrev-@types-babel__template', '@types/babel__template', '7.0.3', null, {}],
    ['packument-test-latest-is-prerelease', 'latest-is-prerelease', '1.0.0-beta-rc.3', null, { licence: null }],
  ] as const)('understands %s', async (file, name, version, published, expected) => {
    serve(`GET /${name.replace('/', '%2f')}`, sample(`${file}.json`));
    const found = await sources().npm.latest(name);
    expect(found).toMatchObject({ name, version, publishedAt: at(published), ...expected });
    expect(server().received[0]?.headers['user-agent']).toBe('percall-test');
  });

  test('does not find an unpublished package, whether npm answers 404 or 200', async () => {
    const body = sample('unpublished-404-scrollreveal-2015.json');
    serve('GET /scrollreveal', body, 404);
    expect(await sources().npm.latest('scrollreveal')).toBeNull();
    serve(
      'GET /Scrollreveal',
      Buffer.from(body.toString().replace('"name": "scrollreveal"', '"name": "Scrollreveal"')),
    );
    await expect(sources().npm.latest('Scrollreveal')).rejects.toThrow(
      new NotFound('the npm package Scrollreveal was unpublished'),
    );
  });

  test.each([
    [
      'opn',
      'manifest-latest-opn-deprecated.json',
      { version: '6.0.0', deprecated: 'The package has been renamed to `open`', licence: 'MIT' },
    ],
    ['@types/babel__template', 'manifest-latest-@types-babel__template.json', { version: '7.0.3', licence: 'MIT' }],
  ])('reads %s by its latest version alone, when the whole answer is too large', async (name, file, expected) => {
    const path = `GET /${name.replace('/', '%2f')}`;
    serve(path, Buffer.alloc(5 * 1024 * 1024, ' '));
    serve(`${path}/latest`, sample(file));
    expect(await sources().npm.latest(name)).toMatchObject({ name, publishedAt: null, ...expected });
  });

  test('asks deps.dev for the publish time, when the whole answer is too large', async () => {
    serve('GET /lodash', Buffer.alloc(5 * 1024 * 1024, ' '));
    serve('GET /lodash/latest', Buffer.from('{"name":"lodash","version":"4.17.20"}'));
    serve('GET /v3/systems/npm/packages/lodash/versions/4.17.20', sample('depsdev-npm-lodash-4.17.20.json'));
    expect(await sources().npm.latest('lodash')).toMatchObject({ publishedAt: at('2020-08-13T16:53:54Z') });
  });

  test.each([
    ['downloads-last-week-express-2026-08', 200, 132239265],
    ['downloads-last-week-express-2026-09', 200, 161638384],
  ])('understands %s', async (file, status, downloads) => {
    serve('GET /downloads/point/last-week/express', sample(`${file}.json`), status);
    expect(await sources().npmDownloads('express')).toBe(downloads);
  });

  test('fails where the downloads API refuses the question', async () => {
    serve('GET /downloads/point/last-week/express', sample('downloads-error-bulk-scoped.json'), 400);
    await expect(sources().npmDownloads('express')).rejects.toThrow('npm-downloads: answered HTTP 400');
  });

  afterWholeSuite(() => expect(unused(), 'every recorded answer has a test').toEqual([]));
});
