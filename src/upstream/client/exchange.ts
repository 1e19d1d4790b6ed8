import type { Dispatcher } from 'undici';
import { ACCEPT_ENCODING, readBody } from './decode.ts';
import { describeFailure } from './failure.ts';

/** What one HTTP exchange sends. */
export interface Exchange {
  readonly url: URL;
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** A response whose body is not read yet. */
export interface Opened {
  readonly status: number;
  /** Names in lower case; a repeated header is joined with commas. */
  readonly headers: Record<string, string>;
  /** Reads the whole body, decoded. Throws ExchangeFailed when it is larger than `maxBytes` or broken. */
  read(maxBytes: number): Promise<Buffer>;
  /** Drops the body unread, which closes the connection. */
  discard(): void;
}

/**
 * Sends one request and resolves when the status has arrived. Redirects are not followed.
 * Throws ExchangeFailed for a failure of the network or the server, and the signal's reason when it aborts.
 */
export async function openExchange(dispatcher: Dispatcher, exchange: Exchange, signal: AbortSignal): Promise<Opened> {
  const { url, method, headers, body } = exchange;
  const response = await dispatcher
    .request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { 'accept-encoding': ACCEPT_ENCODING, ...headers },
      body: body ?? null,
      signal,
    })
    .catch((error: unknown) => {
      throw signal.aborted ? signal.reason : describeFailure(error, false);
    });
  // A dropped body may still emit an error, which is ignored.
  response.body.on('error', () => undefined);
  const flat = flatten(response.headers);
  const empty = method === 'HEAD' || response.statusCode === 204 || response.statusCode === 304;
  return {
    status: response.statusCode,
    headers: flat,
    async read(maxBytes) {
      if (!empty) return readBody(response.body, flat['content-encoding'], maxBytes, signal);
      response.body.destroy();
      return Buffer.alloc(0);
    },
    discard: () => response.body.destroy(),
  };
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
