import { describe, expect, test } from 'vitest';
import type { EcosystemName } from '../../../../src/upstream/packages/ecosystems.ts';
import { affectedRanges, affectedVersions, fixesOf, recordSchema } from '../../../../src/upstream/packages/osv.ts';

type Events = Record<string, string>[];
const part = (name: string, events: Events, type = 'SEMVER', ecosystem = 'npm') => ({
  package: { ecosystem, name },
  ranges: [{ type, events }],
});
const record = (...affected: object[]) => recordSchema.parse({ id: 'X-1', affected });
const ask = (name: string, version: string | null, ecosystem: EcosystemName = 'npm') => ({ ecosystem, name, version });

const lines = record(
  part('p', [{ introduced: '4.0.0' }, { fixed: '6.5.7' }]),
  part('p', [{ introduced: '7.0.0' }, { fixed: '7.4.4' }]),
);

describe('every version', () => {
  test('all fixes, ascending, each once', () => {
    expect(fixesOf([record(part('p', [{ introduced: '7.0.0' }, { fixed: '7.4.4' }])), lines], ask('p', null))).toEqual([
      '6.5.7',
      '7.4.4',
    ]);
  });
  test('of the asked package alone', () => {
    const two = record(
      part('p', [{ fixed: '1.0.0' }]),
      part('q', [{ fixed: '2.0.0' }]),
      part('p', [{ fixed: '3.0.0' }], 'ECOSYSTEM', 'PyPI'),
    );
    expect(fixesOf([two], ask('p', null))).toEqual(['1.0.0']);
    expect(fixesOf([two], ask('q', null))).toEqual(['2.0.0']);
    expect(fixesOf([two], ask('r', null))).toEqual([]);
  });
  test('whatever spelling the record has', () => {
    const spelt = record(part('Flask_Thing', [{ fixed: '2.0' }], 'ECOSYSTEM', 'PyPI'));
    expect(fixesOf([spelt], ask('flask-thing', null, 'pypi'))).toEqual(['2.0']);
  });
  test('a commit is no version', () => {
    expect(fixesOf([record(part('p', [{ introduced: '0' }, { fixed: '74ea7cf' }], 'GIT'))], ask('p', null))).toEqual(
      [],
    );
  });
  test('none known', () => {
    expect(fixesOf([record(part('p', [{ introduced: '0' }, { last_affected: '3.0.0' }]))], ask('p', null))).toEqual([]);
    expect(
      fixesOf([record({ package: { ecosystem: 'npm', name: 'p' }, versions: ['1.0.0'] })], ask('p', null)),
    ).toEqual([]);
  });
});

describe('one version', () => {
  test.each([
    ['4.0.0', ['6.5.7']],
    ['6.5.6', ['6.5.7']],
    ['7.0.0', ['7.4.4']],
    ['7.4.3', ['7.4.4']],
  ])('%s: the fix of its own line', (version, expected) => {
    expect(fixesOf([lines], ask('p', version))).toEqual(expected);
  });

  test('events of one range in any order', () => {
    const mixed = record(
      part('p', [{ introduced: '4.2.0' }, { fixed: '4.2.2' }, { introduced: '3.2.0' }, { fixed: '3.2.22' }]),
    );
    expect(fixesOf([mixed], ask('p', '3.2.5'))).toEqual(['3.2.22']);
    expect(fixesOf([mixed], ask('p', '4.2.1'))).toEqual(['4.2.2']);
  });

  test('a line without a fix: the fixes above the version', () => {
    const open = record(
      part('p', [{ introduced: '0.1.0' }, { last_affected: '0.2.0' }]),
      part('p', [{ introduced: '0.2.7' }, { fixed: '0.2.23' }]),
      part('p', [{ introduced: '0.0.1' }, { fixed: '0.0.9' }]),
    );
    expect(fixesOf([open], ask('p', '0.1.5'))).toEqual(['0.2.23']);
  });

  test('"0" lies before what orders before 0.0.0', () => {
    const go = record(
      part('example.com/m', [{ introduced: '0' }, { fixed: '0.0.0-20200622' }], 'SEMVER', 'Go'),
      part('example.com/m', [{ introduced: '1.0.0' }, { fixed: '1.0.1' }], 'SEMVER', 'Go'),
    );
    expect(fixesOf([go], ask('example.com/m', '0.0.0-20200101', 'go'))).toEqual(['0.0.0-20200622']);
  });

  test('where the order is unsure, all fixes', () => {
    const maven = record(
      part('g:a', [{ introduced: '1.0.0.Final' }, { fixed: '1.5.0.Final' }], 'ECOSYSTEM', 'Maven'),
      part('g:a', [{ introduced: '2.0.0.Final' }, { fixed: '2.5.0.Final' }], 'ECOSYSTEM', 'Maven'),
    );
    expect(fixesOf([maven], ask('g:a', '2.0.1.Final', 'maven'))).toEqual(['1.5.0.Final', '2.5.0.Final']);
  });
});

describe('affected ranges', () => {
  const range = (introduced: string | null, fixed: string | null, lastAffected: string | null = null) => ({
    introduced,
    fixed,
    lastAffected,
  });

  test('every range of the package once, ascending, "0" as the first version', () => {
    const two = record(
      part('p', [{ introduced: '7.0.0' }, { fixed: '7.4.4' }]),
      part('p', [{ introduced: '0' }, { last_affected: '1.2.0' }, { introduced: '3.0.0' }]),
      part('q', [{ introduced: '0' }]),
      part('p', [{ introduced: '0' }, { fixed: '74ea7cf' }], 'GIT'),
    );
    expect(affectedRanges([two, lines], ask('p', null))).toEqual([
      range(null, null, '1.2.0'),
      range('3.0.0', null),
      range('4.0.0', '6.5.7'),
      range('7.0.0', '7.4.4'),
    ]);
  });

  test.each([
    ['6.5.6', [range('4.0.0', '6.5.7')]],
    ['6.5.7', []],
    ['7.4.3', [range('7.0.0', '7.4.4')]],
  ])('of %s those that hold it', (version, expected) => {
    expect(affectedRanges([lines], ask('p', version))).toEqual(expected);
  });

  test('a last affected version is affected, and the next one is not', () => {
    const last = record(part('p', [{ introduced: '0' }, { last_affected: '3.0.0' }]));
    expect(affectedRanges([last], ask('p', '3.0.0'))).toHaveLength(1);
    expect(affectedRanges([last], ask('p', '3.0.1'))).toEqual([]);
  });

  test('a range whose versions cannot be compared is kept', () => {
    const maven = record(part('g:a', [{ introduced: '1.0.Final' }, { fixed: '2.0.Final' }], 'ECOSYSTEM', 'Maven'));
    expect(affectedRanges([maven], ask('g:a', '1.5.Final', 'maven'))).toEqual([range('1.0.Final', '2.0.Final')]);
  });

  test('listed versions are each given once, and of a version that one', () => {
    const listed = record({ ...part('p', []), versions: ['1.0.0', '1.0.1', '1.0.0'] });
    expect(affectedVersions([listed], ask('p', null))).toEqual(['1.0.0', '1.0.1']);
    expect(affectedVersions([listed], ask('p', '1.0.1'))).toEqual(['1.0.1']);
    expect(affectedVersions([listed], ask('p', '2.0.0'))).toEqual([]);
  });
});
