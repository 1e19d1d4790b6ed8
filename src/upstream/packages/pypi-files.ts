import { z } from 'zod';
import { plainText } from '../../lib/untrusted.ts';

/** A published file of a release. */
export interface PypiFile {
  readonly filename: string;
  /** `sdist`, `bdist_wheel` or an older kind. */
  readonly kind: string;
  readonly sizeBytes: number;
  readonly sha256: string | null;
}

/** What a release consists of. */
export interface PypiFiles {
  /** The source distribution first; at most MAX_FILES. */
  readonly files: PypiFile[];
  readonly fileCount: number;
  readonly totalSizeBytes: number;
}

/** Releases with binaries for many platforms have some hundred files. */
export const MAX_FILES = 20;
const MAX_NAME = 200;

/** One entry of `urls`. Members of an entry that is odd are left out, because the release itself is still worth an answer. */
export const fileSchema = z.object({
  upload_time_iso_8601: z.string().nullish(),
  filename: z.string().nullish().catch(null),
  packagetype: z.string().nullish().catch(null),
  size: z.int().nonnegative().nullish().catch(null),
  digests: z
    .object({ sha256: z.string().regex(/^[0-9a-f]{64}$/) })
    .nullish()
    .catch(null),
});

/** The files of a release, in one shape. */
export function readFiles(urls: readonly z.output<typeof fileSchema>[]): PypiFiles {
  const files = urls.flatMap(({ filename, packagetype, size, digests }) =>
    filename == null || size == null
      ? []
      : [
          {
            filename: plainText(filename, MAX_NAME),
            kind: plainText(packagetype, MAX_NAME) || 'unknown',
            sizeBytes: size,
            sha256: digests?.sha256 ?? null,
          },
        ],
  );
  const sourceFirst = files.sort((a, b) => Number(b.kind === 'sdist') - Number(a.kind === 'sdist'));
  return {
    files: sourceFirst.slice(0, MAX_FILES),
    fileCount: urls.length,
    totalSizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}
