import { z } from 'zod';
import type { Upstream } from '../../../upstream/client/http.ts';
import type { Supported } from './client.ts';

const supported = z.object({
  signers: z.record(z.string(), z.array(z.string())).nullish().catch(null),
  kinds: z.array(
    z.object({
      x402Version: z.number(),
      scheme: z.string(),
      network: z.string(),
      extra: z
        .record(z.string(), z.unknown())
        .nullish()
        .transform((extra) => extra ?? undefined),
    }),
  ),
});

/** Returns the kinds and signers that `/supported` lists. Throws when it has no valid answer. No error message holds a secret, so `/readyz` may show it. */
export async function supportedKinds(
  upstream: Upstream,
  url: string,
  headers: Record<string, string>,
): Promise<Supported> {
  const answer = await upstream.json({ url, headers }, supported);
  if (answer === null) throw new Error('/supported is not there');
  return { kinds: answer.kinds, signers: answer.signers ?? {} };
}
