import { describe, expect, test } from 'vitest';
import { readAdvisories, recordSchema } from '../../../../src/upstream/packages/osv.ts';

const ASKED = { ecosystem: 'npm', name: 'p', version: null } as const;
const V3 = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H';
const V4 = 'CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N';
const read = (...records: object[]) =>
  readAdvisories(
    records.map((record) => recordSchema.parse(record)),
    ASKED,
  );
const severityOf = (record: object) => read({ id: 'X', ...record })[0]?.severity;

describe('severity', () => {
  test.each([
    ['v3', { severity: [{ type: 'CVSS_V3', score: V3 }] }, { label: 'critical', score: 9.8, vector: V3 }],
    [
      'v4 goes before v3',
      {
        severity: [
          { type: 'CVSS_V3', score: V3 },
          { type: 'CVSS_V4', score: V4 },
        ],
      },
      { label: 'medium', score: 5.4, vector: V4 },
    ],
    [
      'the database goes before the score',
      { severity: [{ type: 'CVSS_V3', score: V3 }], database_specific: { severity: 'LOW' } },
      { label: 'low', score: 9.8, vector: V3 },
    ],
    [
      'a label without a vector',
      { database_specific: { severity: 'MODERATE' } },
      { label: 'medium', score: null, vector: null },
    ],
    ['an unknown label', { database_specific: { severity: 'DIRE' } }, { label: null, score: null, vector: null }],
    ['a broken vector', { severity: [{ type: 'CVSS_V3', score: 'AV:N' }] }, { label: null, score: null, vector: null }],
    [
      'a broken v4 gives way to v3',
      {
        severity: [
          { type: 'CVSS_V4', score: 'x' },
          { type: 'CVSS_V3', score: V3 },
        ],
      },
      { label: 'critical', score: 9.8, vector: V3 },
    ],
    ['another system', { severity: [{ type: 'Ubuntu', score: 'high' }] }, { label: null, score: null, vector: null }],
    ['none', { severity: [], database_specific: 'x' }, { label: null, score: null, vector: null }],
    [
      "the package's own, not its neighbour's",
      {
        affected: [
          { package: { ecosystem: 'npm', name: 'q' }, severity: [{ type: 'CVSS_V4', score: V4 }] },
          { package: { ecosystem: 'npm', name: 'p' }, severity: [{ type: 'CVSS_V3', score: V3 }] },
        ],
      },
      { label: 'critical', score: 9.8, vector: V3 },
    ],
  ])('%s', (_what, record, expected) => {
    expect(severityOf(record)).toEqual(expected);
  });
});

test('records of one flaw are one advisory, with the best of each', () => {
  const fixed = (version: string) => [
    {
      package: { ecosystem: 'npm', name: 'p' },
      ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: version }] }],
    },
  ];
  const [advisory, ...others] = read(
    {
      id: 'CVE-1',
      published: '2021-01-01T00:00:00Z',
      modified: '2023-01-01T00:00:00Z',
      severity: [{ type: 'CVSS_V3', score: V3 }],
      affected: fixed('1.2.0'),
    },
    {
      id: 'GHSA-1',
      aliases: ['CVE-1'],
      summary: 'Bad',
      published: '2021-02-01T00:00:00Z',
      modified: '2022-01-01T00:00:00.5Z',
      affected: fixed('1.1.0'),
    },
  );
  expect(others).toEqual([]);
  expect(advisory).toEqual({
    id: 'GHSA-1',
    aliases: ['CVE-1'],
    summary: 'Bad',
    severity: { label: 'critical', score: 9.8, vector: V3 },
    fixedIn: ['1.1.0', '1.2.0'],
    affected: [
      { introduced: null, fixed: '1.1.0', lastAffected: null },
      { introduced: null, fixed: '1.2.0', lastAffected: null },
    ],
    affectedVersions: [],
    malicious: false,
    publishedAt: Date.UTC(2021, 0, 1) / 1000,
    modifiedAt: Date.UTC(2023, 0, 1) / 1000,
  });
});

test('a withdrawn record is left out, and lends nothing to another', () => {
  const kept = { id: 'GHSA-2', aliases: ['CVE-1'], published: '2022-01-01T00:00:00Z' };
  const withdrawn = { id: 'GHSA-1', aliases: ['CVE-1', 'CVE-2'], summary: 'Void', withdrawn: '2022-01-01T00:00:00Z' };
  expect(read(kept, withdrawn)).toMatchObject([{ id: 'GHSA-2', aliases: ['CVE-1'], summary: null }]);
  expect(read(withdrawn)).toEqual([]);
});

test('newest first; without a time last; an unreadable time is unknown', () => {
  const advisories = read(
    { id: 'A', published: '2020-01-01T00:00:00Z' },
    { id: 'D', published: 'soon' },
    { id: 'B', published: '2024-01-01T00:00:00Z' },
    { id: 'C', published: '2020-01-01T00:00:00Z' },
  );
  expect(advisories.map(({ id, publishedAt }) => [id, publishedAt !== null])).toEqual([
    ['B', true],
    ['A', true],
    ['C', true],
    ['D', false],
  ]);
});
