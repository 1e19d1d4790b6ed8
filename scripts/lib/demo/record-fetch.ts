/** One request and its response, without the bodies. */
export interface Exchange {
  readonly requestHeaders: Headers;
  readonly status: number;
  readonly responseHeaders: Headers;
}

/** A fetch that records its exchanges in order, to show what a client did that asks twice. */
export function recordFetch(): { fetch: typeof globalThis.fetch; exchanges: readonly Exchange[] } {
  const exchanges: Exchange[] = [];
  const recorded: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const response = await globalThis.fetch(request);
    exchanges.push({ requestHeaders: request.headers, status: response.status, responseHeaders: response.headers });
    return response;
  };
  return { fetch: recorded, exchanges };
}
