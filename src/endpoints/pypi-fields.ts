import { z } from 'zod';
import { MAX_FILES } from '../upstream/packages/pypi.ts';

const count = z.int().nonnegative();

/** One requirement (PEP 508) in its parts. */
export const dependencyField = z.strictObject({
  name: z.string(),
  extras: z.array(z.string()).meta({ description: 'Extras asked of the dependency, as in requests[socks]' }),
  specifier: z.string().nullable().meta({ description: 'PEP 440 version specifier; null: any version' }),
  extra: z
    .string()
    .nullable()
    .meta({ description: 'Needed only when this extra of the package is asked for; null: always' }),
  marker: z.string().nullable().meta({ description: 'PEP 508 condition beside the extra; null: none' }),
});

/** What a release consists of. */
export const fileFields = {
  files: z
    .array(
      z.strictObject({
        filename: z.string(),
        kind: z.string().meta({ description: 'sdist, bdist_wheel or an older kind' }),
        sizeBytes: count,
        sha256: z.string().nullable(),
      }),
    )
    .meta({ description: `Files of this release, the source distribution first, at most ${MAX_FILES}` }),
  fileCount: count,
  totalSizeBytes: count.meta({ description: 'Of all its files together' }),
};

/** Who published the first file. */
export const provenanceField = z
  .strictObject({
    filename: z.string().meta({ description: 'The file that was looked up: the first of `files`' }),
    publishers: z
      .array(
        z.strictObject({
          kind: z.string().meta({ description: 'For example GitHub or GitLab' }),
          repository: z.string().nullable(),
          workflow: z.string().nullable(),
        }),
      )
      .meta({ description: 'Trusted publishers that PyPI attests' }),
    url: z.string().meta({ description: 'The attestation, for a verifier' }),
  })
  .nullable()
  .meta({
    description:
      "PyPI's attestation of who published it (PEP 740), not verified here; null: it has none, or see `missing`",
  });
