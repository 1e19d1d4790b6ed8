import { z } from 'zod';
import { parseUsdc } from './usdc.ts';

const operation = z.object({
  get: z.object({ 'x-payment-info': z.object({ price: z.object({ amount: z.string() }) }) }),
});

/** The most that is read of a listing. A usual one has a few hundred kilobytes. */
const MAX_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 5000;

/** The price of a GET on this path in USDC base units, from the seller's own OpenAPI document. Null when the document has none. */
export function listedPriceOf(openapi: unknown, path: string): bigint | null {
  const paths = z.object({ paths: z.record(z.string(), z.unknown()) }).safeParse(openapi);
  if (!paths.success || !Object.hasOwn(paths.data.paths, path)) return null;
  const listed = operation.safeParse(paths.data.paths[path]);
  return listed.success ? parseUsdc(listed.data.get['x-payment-info'].price.amount) : null;
}

/** Reads the document at the URL's own origin and returns the price. Null when there is none, for any reason. */
export async function fetchListedPrice(url: URL): Promise<bigint | null> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await fetch(new URL('/openapi.json', url), { signal, redirect: 'error' });
    if (!answer.ok || !answer.body) return null;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BYTES) return null;
      chunks.push(chunk);
    }
    return listedPriceOf(JSON.parse(Buffer.concat(chunks).toString('utf8')), url.pathname);
  } catch {
    return null;
  }
}
