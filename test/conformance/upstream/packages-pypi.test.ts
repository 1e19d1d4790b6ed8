import { describe, expect, test } from 'vitest';
import { at, SAMPLES_PRESENT, samplesOf, usePackages } from '../../support/upstream/packages.ts';
import { PATIENT_MS } from '../../support/upstream/patience.ts';
import { afterWholeSuite } from '../../support/whole-suite.ts';

const { serve, sources, open } = usePackages({ timeoutMs: PATIENT_MS });
const { sample, unused } = samplesOf('pypi');

describe.skipIf(!SAMPLES_PRESENT)('PyPI’s source over recorded answers (skipped where the samples are absent)', () => {
  test.each([
    [
      'docs-project-sampleproject',
      'sampleproject',
      {
        version: '4.0.0',
        licence: 'MIT License',
        requiresPython: '>=3.9',
        publishedAt: at('2024-11-06T22:37:09Z'),
        homepage: 'https://github.com/pypa/sampleproject',
        projectUrls: expect.arrayContaining([{ label: 'Source', url: 'https://github.com/pypa/sampleproject/' }]),
        files: [
          { filename: 'sampleproject-4.0.0.tar.gz', kind: 'sdist', sizeBytes: expect.any(Number) },
          { filename: 'sampleproject-4.0.0-py3-none-any.whl', kind: 'bdist_wheel', sizeBytes: expect.any(Number) },
        ],
        fileCount: 2,
        advisories: [],
      },
    ],
    ['docs-release-sampleproject-4.0.0', 'sampleproject', { version: '4.0.0', licence: 'MIT License' }],
    ['release-attrs-17.4.0', 'attrs', { requiresPython: null, licence: 'MIT', homepage: 'http://www.attrs.org/' }],
    ['release-black-21.11b0', 'black', { yanked: true, publishedAt: at('2021-11-17T02:32:14Z') }],
    [
      'release-colorama-0.3.9',
      'colorama',
      { requiresPython: null, dependencies: null, publishedAt: at('2017-04-27T07:12:12Z') },
    ],
    [
      'release-importlib-metadata-1.7.0',
      'importlib-metadata',
      { licence: 'Apache Software License', requiresPython: '!=3.0.*,!=3.1.*,!=3.2.*,!=3.3.*,!=3.4.*,>=2.7' },
    ],
    [
      'release-isodate-0.7.0',
      'isodate',
      { licence: 'BSD License', yanked: true, homepage: 'https://github.com/gweis/isodate/' },
    ],
    ['release-poetry-core-2.1.3', 'poetry-core', { licence: 'MIT', dependencies: null }],
    ['release-zipp-3.5.0', 'zipp', { licence: 'MIT License' }],
  ])('understands %s', async (file, name, expected) => {
    serve(`GET /pypi/${name}/json`, sample(`${file}.json`));
    expect(await sources().pypi.latest(name)).toMatchObject({ name, ...expected });
  });

  test('reads requirements in both spellings, with extras and markers', async () => {
    serve('GET /pypi/black/json', sample('release-black-21.11b0.json'));
    const { dependencies } = (await sources().pypi.latest('Black'))!;
    expect(dependencies).toHaveLength(16);
    expect(dependencies).toContainEqual({
      name: 'tomli',
      extras: [],
      specifier: '<2.0.0,>=0.2.6',
      extra: null,
      marker: null,
    });
    expect(dependencies).toContainEqual({
      name: 'uvloop',
      extras: [],
      specifier: '>=0.15.2',
      extra: 'uvloop',
      marker: null,
    });
    expect(dependencies).toContainEqual({
      name: 'typed-ast',
      extras: [],
      specifier: '>=1.4.2',
      extra: null,
      marker: 'python_version < "3.8" and implementation_name == "cpython"',
    });
  });

  test('merges six advisories into four vulnerabilities, and leaves a withdrawn one out', async () => {
    const body = sample('release-django-3.0-vulns-excerpt.json');
    serve('GET /pypi/django/json', body);
    const { advisories } = (await sources().pypi.latest('Django'))!;
    expect(advisories.map(({ id, aliases, fixedIn }) => [id, aliases.includes(id), fixedIn])).toEqual([
      ['PYSEC-2021-9', false, ['2.2.18', '3.0.12', '3.1.6']],
      ['GHSA-wpjr-j57x-wxfw', false, ['2.2.13', '3.0.7']],
      ['PYSEC-2020-36', false, ['1.11.29', '2.2.11', '3.0.4']],
      ['GHSA-xgxc-v2qg-chmh', false, ['2.2.20', '3.0.14', '3.1.8']],
    ]);
    const withdrawn = JSON.parse(sample('docs-withdrawn-vulnerability.json').toString());
    const project = JSON.parse(body.toString());
    serve('GET /pypi/django/json', Buffer.from(JSON.stringify({ ...project, vulnerabilities: [withdrawn] })));
    expect(await open().pypi.latest('django')).toMatchObject({
      advisories: [],
    });
  });

  afterWholeSuite(() => expect(unused(), 'every recorded answer has a test').toEqual([]));
});
