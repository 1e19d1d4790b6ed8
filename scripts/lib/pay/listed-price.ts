import { z } from 'zod';
import { parseUsdc } from './usdc.ts';

const operation = z.object({
  get: z.object({ 'x-payment-info': z.object({ price: z.object({ amount: z.string() }) }) }),
});

/** A listing is a few hundred kilobytes; a seller who sends without end is not listened to. */
const MAX_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 5000;

/** What the seller's own OpenAPI document asks for a GET on this path, in USDC base units; null when it does not say. */
export function listedPriceOf(openapi: unknown, path: string): bigint | null {
  const paths = z.object({ paths: z.record(z.string(), z.unknown()) }).safeParse(openapi);
  if (!paths.success || !Object.hasOwn(paths.data.paths, path)) return null;
  const listed = operation.safeParse(paths.data.paths[path]);
  return listed.success ? parseUsdc(listed.data.get['x-payment-info'].price.amount) : null;
}

/** Reads the listing at the URL's own origin and looks the price up; null when there is none to be had, for whatever reason. */
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
