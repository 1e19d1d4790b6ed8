import { z } from 'zod';

/** What the registry says of the published file (https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md#dist). */
export interface NpmDist {
  /** Bytes of all files; null: published before the registry measured them. */
  readonly unpackedSizeBytes: number | null;
  readonly fileCount: number | null;
  /** Subresource Integrity of the tarball; null: published before there was one. */
  readonly integrity: string | null;
  /** The registry's attestation of how the version was built; null: it has none. */
  readonly provenance: { readonly predicateType: string; readonly url: string } | null;
}

const text = z.string().max(500);
const count = z.int().nonnegative().nullable().catch(null);

/** One odd member must not hide the others, so each is checked by itself. */
const distSchema = z.object({
  unpackedSize: count,
  fileCount: count,
  integrity: text.nullable().catch(null),
  attestations: z
    .object({ url: text.regex(/^https?:\/\//), provenance: z.object({ predicateType: text }) })
    .nullable()
    .catch(null),
});

/** Reads `dist` of a version's manifest, in all its forms since 2010. */
export function readDist(dist: unknown): NpmDist {
  const read = distSchema.safeParse(typeof dist === 'object' && dist !== null ? dist : {}).data;
  const attested = read?.attestations;
  return {
    unpackedSizeBytes: read?.unpackedSize ?? null,
    fileCount: read?.fileCount ?? null,
    integrity: read?.integrity ?? null,
    provenance: attested ? { predicateType: attested.provenance.predicateType, url: attested.url } : null,
  };
}
