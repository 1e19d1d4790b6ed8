import { Readable } from 'node:stream';
import { currentWire } from './current.ts';
import type { WireAnswer } from './wire.ts';

// What stands in the place of `undici` while seeds run: the same names, over the simulated network. Only what the service uses.

interface RequestOptions {
  origin?: string | URL;
  path: string;
  method: string;
  headers?: Record<string, string>;
  body?: string | null;
  signal?: AbortSignal;
}

const lowerCased = (headers: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));

/** A body as undici gives it: a stream, with ways to read all of it. */
function bodyOf(text: string): Readable {
  const bytes = Buffer.from(text, 'utf8');
  let left = true;
  const stream = new Readable({
    read() {
      if (left && bytes.length > 0) this.push(bytes);
      left = false;
      this.push(null);
    },
  });
  return Object.assign(stream, {
    text: async () => text,
    json: async () => JSON.parse(text) as unknown,
    arrayBuffer: async () => bytes,
    dump: async () => void stream.destroy(),
  });
}

async function request(origin: string, { path, method, headers, body, signal }: RequestOptions) {
  const sent = { origin, path, method, headers: lowerCased(headers), body: body ?? '' };
  const answer: WireAnswer = await currentWire().send(sent, signal);
  return { statusCode: answer.status, headers: answer.headers ?? {}, body: bodyOf(answer.body), trailers: {} };
}

function dispatcher(origin: string | URL | undefined) {
  return {
    request: (options: RequestOptions) => request(String(options.origin ?? origin), options),
    close: async () => undefined,
    destroy: async () => undefined,
    on: () => undefined,
    once: () => undefined,
    off: () => undefined,
  };
}

export function Pool(origin: string | URL) {
  return dispatcher(origin);
}

export function Client(origin: string | URL) {
  return dispatcher(origin);
}

export function Agent() {
  return dispatcher(undefined);
}
