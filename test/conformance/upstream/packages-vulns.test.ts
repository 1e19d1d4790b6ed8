import { describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../../src/errors.ts';
import { at, SAMPLES_PRESENT, samplesOf, usePackages } from '../../support/upstream/packages.ts';
import { PATIENT_MS } from '../../support/upstream/patience.ts';
import { afterWholeSuite } from '../../support/whole-suite.ts';

const { serve, sources } = usePackages({ timeoutMs: PATIENT_MS });
const { sample, unused } = samplesOf('osv');

describe.skipIf(!SAMPLES_PRESENT)('OSV’s source over recorded answers (skipped where the samples are absent)', () => {
  const V31 = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:';
  test.each([
    [
      'npm-GHSA-35jh-r3h4-6jhm-lodash',
      'npm',
      'lodash',
      { label: 'high', score: 7.2, vector: 'CVSS:3.1/AV:N/AC:L/PR:H/UI:N/S:U/C:H/I:H/A:H' },
      ['4.17.21'],
    ],
    ['npm-GHSA-f89g-whpf-6q9m', 'npm', 'i18next', null, ['1.10.3']],
    ['npm-GHSA-jvf4-g24p-2qgw-last-affected', 'npm', 'shiba', null, []],
    ['npm-MAL-2023-995', 'npm', 'yandex-yt-yson-bindings', null, []],
    [
      'PyPI-GHSA-9v2f-6vcg-3hgv-no-ranges',
      'pypi',
      'gradio',
      { label: 'critical', score: 9.8, vector: `${V31}H/I:H/A:H` },
      [],
    ],
    ['PyPI-MAL-2024-10238', 'pypi', '123bla', null, []],
    ['PyPI-PYSEC-2023-74', 'pypi', 'requests', null, ['2.31.0']],
    [
      'Go-GHSA-c3h9-896r-86jm',
      'go',
      'github.com/gogo/protobuf',
      { label: 'high', score: 8.6, vector: `${V31}L/I:L/A:H` },
      ['1.3.2'],
    ],
    ['Go-GO-2021-0053', 'go', 'github.com/gogo/protobuf', null, ['1.3.2']],
    ['Go-GO-2023-1558', 'go', 'github.com/ipfs/go-bitfield', null, ['1.1.0']],
    [
      'Maven-GHSA-77rv-6vfw-x4gc',
      'maven',
      'org.springframework.security.oauth:spring-security-oauth',
      { label: 'low', score: 9, vector: 'CVSS:3.1/AV:N/AC:L/PR:L/UI:R/S:C/C:H/I:H/A:H' },
      ['2.0.17'],
    ],
    [
      'Maven-GHSA-838r-hvwh-24h8',
      'maven',
      'org.apache.any23:apache-any23',
      { label: 'critical', score: 9.1, vector: `${V31}H/I:H/A:N` },
      ['2.5'],
    ],
    ['NuGet-GHSA-5crp-9r3c-p9vr', 'nuget', 'Newtonsoft.Json', { label: 'low', score: null, vector: null }, ['13.0.1']],
    [
      'Packagist-GHSA-f2wf-25xc-69c9-guzzle',
      'packagist',
      'guzzlehttp/guzzle',
      { label: 'high', score: 7.5, vector: `${V31}H/I:N/A:N` },
      ['6.5.7', '7.4.4'],
    ],
    [
      'crates.io-GHSA-qc84-gqf4-9926',
      'crates.io',
      'crossbeam-utils',
      { label: 'high', score: 8.1, vector: 'CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:H' },
      ['0.8.7'],
    ],
    ['crates.io-GHSA-wcg3-cvx6-7396', 'crates.io', 'time', { label: 'medium', score: null, vector: null }, ['0.2.23']],
  ] as const)('understands the record %s', async (file, ecosystem, name, severity, fixedIn) => {
    const record = sample(`vuln-${file}.json`);
    serve('POST /v1/query', Buffer.concat([Buffer.from('{"vulns":['), record, Buffer.from(']}')]));
    const { advisories } = await sources().osv.advisories({ ecosystem, name, version: null });
    const { id } = JSON.parse(record.toString());
    expect(advisories).toMatchObject([
      { id, fixedIn, severity: severity ?? { label: null, score: null, vector: null } },
    ]);
  });

  test('names for a version the fix of its own release line', async () => {
    const record = sample('vuln-Packagist-GHSA-f2wf-25xc-69c9-guzzle.json');
    serve('POST /v1/query', Buffer.concat([Buffer.from('{"vulns":['), record, Buffer.from(']}')]));
    const ask = (version: string) =>
      sources().osv.advisories({ ecosystem: 'packagist', name: 'guzzlehttp/guzzle', version });
    expect((await ask('6.5.6')).advisories).toMatchObject([{ fixedIn: ['6.5.7'] }]);
    expect((await ask('7.4.3')).advisories).toMatchObject([{ fixedIn: ['7.4.4'] }]);
  });

  test('merges what GitHub and RustSec say of one vulnerability, and leaves a withdrawn record out', async () => {
    const both = ['vuln-crates.io-RUSTSEC-2022-0013.json', 'vuln-crates.io-GHSA-m5pq-gvj9-9vr8.json']
      .map(sample)
      .join();
    serve('POST /v1/query', Buffer.from(`{"vulns":[${both}]}`));
    const found = await sources().osv.advisories({ ecosystem: 'crates.io', name: 'regex', version: '1.5.4' });
    expect(found.advisories).toMatchObject([
      {
        id: 'GHSA-m5pq-gvj9-9vr8',
        aliases: ['CVE-2022-24713', 'RUSTSEC-2022-0013'],
        fixedIn: ['1.5.5'],
        severity: { label: 'high', score: 7.5 },
        publishedAt: at('2022-03-08T12:00:00Z'),
      },
    ]);
    serve('POST /v1/query', Buffer.from(`{"vulns":[${sample('vuln-RubyGems-GHSA-35c4-f3rq-f9g3-withdrawn.json')}]}`));
    const none = await sources().osv.advisories({ ecosystem: 'rubygems', name: 'activesupport', version: null });
    expect(none.advisories).toEqual([]);
  });

  test.each([
    ['query-PyPI-jinja2-3.1.4-MASKED', 'pypi', 'jinja2', '3.1.4', 3, ['GHSA-cpwx-vrp4-4pq7', 'medium', 5.4, ['3.1.6']]],
    [
      'query-RubyGems-nokogiri-1.18.2-MASKED',
      'rubygems',
      'nokogiri',
      '1.18.2',
      15,
      ['GHSA-p67v-3w7g-wjg7', 'low', 1.7, ['1.19.4']],
    ],
  ] as const)(
    'understands the answer %s',
    async (file, ecosystem, name, version, count, [id, label, score, fixedIn]) => {
      serve('POST /v1/query', sample(`${file}.json`));
      const { advisories } = await sources().osv.advisories({ ecosystem, name, version });
      expect(advisories).toHaveLength(count);
      expect(advisories.find((one) => one.id === id)).toMatchObject({
        severity: { label, score },
        fixedIn,
        modifiedAt: null,
      });
    },
  );

  test('gives no advisory where OSV knows none, and fails where OSV refuses the query', async () => {
    serve('POST /v1/query', sample('query-no-match.json'));
    const ask = (name: string) => sources().osv.advisories({ ecosystem: 'npm', name, version: null });
    expect((await ask('left-pad')).advisories).toEqual([]);
    serve('POST /v1/query', sample('query-error-400-version-and-purl.json'), 400);
    await expect(ask('right-pad')).rejects.toBeInstanceOf(UpstreamFailed);
  });

  afterWholeSuite(() => {
    const left = unused().filter((file) => !file.startsWith('querybatch-'));
    expect(left, 'every recorded answer has a test, except those to batch queries, which it does not make').toEqual([]);
  });
});
