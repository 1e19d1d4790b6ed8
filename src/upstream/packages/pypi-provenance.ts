import { z } from 'zod';
import { plainText } from '../../lib/untrusted.ts';
import type { Upstream } from '../client/http.ts';

/** Who PyPI attests to have published a file (PEP 740). */
export interface PypiProvenance {
  /** The file that the attestation is about. */
  readonly filename: string;
  readonly publishers: readonly {
    /** GitHub, GitLab … */
    readonly kind: string;
    readonly repository: string | null;
    readonly workflow: string | null;
  }[];
  readonly url: string;
}

/** Null: PyPI has no attestation of the file. Rejects with UpstreamFailed when it does not answer. */
export type FindPypiProvenance = (
  name: string,
  version: string,
  filename: string,
  signal?: AbortSignal,
) => Promise<PypiProvenance | null>;

/** A document holds one bundle, of some ten kilobytes. */
const MAX_BYTES = 256 * 1024;
const MAX_PUBLISHERS = 5;
const MAX_TEXT = 200;

const text = z.string().nullish();
// A Google publisher is named by an e-mail address, which is not read.
const publisher = z.object({ kind: z.string(), repository: text, workflow: text, workflow_filepath: text });
const provenanceSchema = z.object({ attestation_bundles: z.array(z.object({ publisher })).min(1) });

/** PyPI's Integrity API (https://docs.pypi.org/api/integrity/): one small document a file. */
export function createPypiProvenance(upstream: Upstream, baseUrl: string): FindPypiProvenance {
  const plain = (value: unknown) => plainText(value, MAX_TEXT) || null;
  return async (name, version, filename, signal) => {
    const path = [name, version, filename].map(encodeURIComponent).join('/');
    const url = `${baseUrl}/integrity/${path}/provenance`;
    const accept = 'application/vnd.pypi.integrity.v1+json';
    const got = await upstream.jsonDated(
      { url, accept, maxBytes: MAX_BYTES, ...(signal && { signal }) },
      provenanceSchema,
    );
    if (got === null) return null;
    const publishers = got.data.attestation_bundles.slice(0, MAX_PUBLISHERS).map(({ publisher: one }) => ({
      kind: plainText(one.kind, MAX_TEXT),
      repository: plain(one.repository),
      workflow: plain(one.workflow ?? one.workflow_filepath),
    }));
    return { filename, publishers, url: got.url };
  };
}
