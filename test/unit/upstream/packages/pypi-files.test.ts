import { expect, test } from 'vitest';
import { z } from 'zod';
import { fileSchema, MAX_FILES, readFiles } from '../../../../src/upstream/packages/pypi.ts';

const read = (urls: unknown[]) => readFiles(z.array(fileSchema).parse(urls));
const file = (filename: string, packagetype: string, size: number) => ({ filename, packagetype, size });

test('the source distribution comes first; all files are counted and at most twenty are listed', () => {
  const wheels = Array.from({ length: 40 }, (_, at) => file(`w-${at}.whl`, 'bdist_wheel', 10));
  const { files, fileCount, totalSizeBytes } = read([...wheels, file('s.tar.gz', 'sdist', 3)]);
  expect(files[0]).toEqual({ filename: 's.tar.gz', kind: 'sdist', sizeBytes: 3, sha256: null });
  expect([files.length, fileCount, totalSizeBytes]).toEqual([MAX_FILES, 41, 403]);
});

test('an entry that is odd is counted and not listed', () => {
  expect(
    read([{}, { filename: 'a', size: -1 }, { filename: 7, size: 1 }, { filename: 'b', size: 2, digests: 'x' }]),
  ).toEqual({
    files: [{ filename: 'b', kind: 'unknown', sizeBytes: 2, sha256: null }],
    fileCount: 4,
    totalSizeBytes: 2,
  });
});
