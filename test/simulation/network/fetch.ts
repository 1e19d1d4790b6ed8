import { currentWire } from './current.ts';

interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
}

/** `fetch` over the simulated network, for libraries that bring no client of their own. Answers have what those read. */
async function simulatedFetch(
  input: string | URL,
  { method = 'GET', headers = {}, body = '', signal }: FetchOptions = {},
) {
  const { origin, pathname, search } = new URL(input);
  const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
  const sent = { origin, path: pathname + search, method, headers: named, body };
  const answer = await currentWire()
    .send(sent, signal)
    .catch((cause: unknown) => {
      throw signal?.aborted ? signal.reason : new TypeError('fetch failed', { cause });
    });
  const reported = new Map(Object.entries(answer.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    status: answer.status,
    ok: answer.status >= 200 && answer.status < 300,
    statusText: '',
    headers: { get: (name: string) => reported.get(name.toLowerCase()) ?? null },
    text: async () => answer.body,
    json: async () => JSON.parse(answer.body) as unknown,
  };
}

export function installFetch(): void {
  Object.assign(globalThis, { fetch: simulatedFetch });
}
