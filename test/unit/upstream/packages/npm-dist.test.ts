import { expect, test } from 'vitest';
import { readDist } from '../../../../src/upstream/packages/npm.ts';

const NONE = { unpackedSizeBytes: null, fileCount: null, integrity: null, provenance: null };
const ATTESTED = { url: 'https://r.example/a', provenance: { predicateType: 'https://slsa.dev/provenance/v1' } };

test.each([undefined, null, 'x', 7, [], {}])('nothing is known of %o', (dist) => {
  expect(readDist(dist)).toEqual(NONE);
});

test('all members', () => {
  expect(readDist({ unpackedSize: 5, fileCount: 2, integrity: 'sha512-x', attestations: ATTESTED })).toEqual({
    unpackedSizeBytes: 5,
    fileCount: 2,
    integrity: 'sha512-x',
    provenance: { predicateType: 'https://slsa.dev/provenance/v1', url: 'https://r.example/a' },
  });
});

test.each([
  [{ unpackedSize: -1, fileCount: 2 }, { fileCount: 2 }],
  [{ unpackedSize: 5, fileCount: 'two' }, { unpackedSizeBytes: 5 }],
  [{ integrity: 'x'.repeat(501), fileCount: 2 }, { fileCount: 2 }],
  [{ attestations: { ...ATTESTED, url: 'javascript:1' }, fileCount: 2 }, { fileCount: 2 }],
  [{ attestations: { url: 'https://r.example/a' }, fileCount: 2 }, { fileCount: 2 }],
])('an odd member of %o does not hide the others', (dist, known) => {
  expect(readDist(dist)).toEqual({ ...NONE, ...known });
});
