import { expect, test } from 'vitest';
import { mergeByAlias } from '../../../../src/upstream/packages/osv.ts';

const record = (id: string, ...aliases: string[]) => ({ id, aliases });

test('one vulnerability has its best-known name, whichever record comes first', () => {
  const records = [record('PYSEC-1', 'CVE-1'), record('GHSA-1', 'CVE-1'), record('CVE-1')];
  expect(mergeByAlias(records)).toEqual([
    { id: 'GHSA-1', aliases: ['CVE-1', 'PYSEC-1'], records: [records[1], records[2], records[0]] },
  ]);
  expect(mergeByAlias([record('PYSEC-1', 'CVE-1'), record('CVE-1')])).toMatchObject([{ id: 'CVE-1' }]);
  expect(mergeByAlias([record('RUSTSEC-1', 'CVE-1')])).toMatchObject([{ id: 'RUSTSEC-1', aliases: ['CVE-1'] }]);
});

test('a chain of aliases is one vulnerability, also when its middle comes last', () => {
  const flaws = mergeByAlias([record('A', 'x'), record('B', 'y'), record('C'), record('D', 'x', 'y')]);
  expect(flaws.map(({ id, aliases }) => [id, aliases])).toEqual([
    ['A', ['B', 'D', 'x', 'y']],
    ['C', []],
  ]);
});

test('records without a common name are not merged', () => {
  expect(mergeByAlias([record('GHSA-1', 'CVE-1'), record('GHSA-2', 'CVE-2')])).toHaveLength(2);
  expect(mergeByAlias([])).toEqual([]);
});
