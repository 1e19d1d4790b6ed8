/** The most that is read of a listing. A usual one has a few hundred kilobytes. */
const MAX_BYTES = 4 * 1024 * 1024;
const TIMEOUT_MS = 5000;

/** Fetches a JSON document of limited size, without following redirects. Null when there is none, for any reason. */
export async function readJson(url: URL): Promise<unknown> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' });
    if (!answer.ok || !answer.body) return null;
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BYTES) return null;
      chunks.push(chunk);
    }
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return null;
  }
}
