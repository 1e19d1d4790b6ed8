import { pipeline, Readable, type Transform } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { describeFailure, ExchangeFailed } from './failure.ts';

export interface Exchange {
  readonly url: URL;
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface Opened {
  readonly status: number;
  /** Names in lower case; a repeated header is joined with commas. */
  readonly headers: Record<string, string>;
  /** Reads the whole body, decoded. Throws ExchangeFailed when it is larger than `maxBytes` or broken. */
  read(maxBytes: number): Promise<Buffer>;
  discard(): void;
}

const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

/** Sends one request, resolves with the status, follows no redirect. Throws ExchangeFailed or the signal's reason. */
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

type Chunks = AsyncIterable<Buffer>;
type Decoder = Transform | ((source: Chunks) => Chunks);

/** Reads and decodes, and counts both: a decompression bomb costs at most one chunk more than `maxBytes`. */
export async function readBody(
  raw: Readable,
  contentEncoding: string | undefined,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const collect = async (source: Chunks) => {
    for await (const chunk of capped(source, maxBytes)) chunks.push(chunk);
  };
  try {
    const [first, second] = decodersOf(contentEncoding);
    const limited = (source: Chunks) => capped(source, maxBytes);
    if (first === undefined) await piped(raw, collect, { signal });
    else if (second === undefined) await piped(raw, limited, first, collect, { signal });
    else await piped(raw, limited, first, limited, second, collect, { signal });
  } catch (error) {
    raw.destroy();
    if (signal.aborted) throw signal.reason;
    if (isCodingFault(error)) throw new ExchangeFailed('reading', 'its answer is not encoded as it says', error);
    throw describeFailure(error, true);
  }
  return Buffer.concat(chunks);
}

async function* capped(source: Chunks, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > maxBytes)
      throw new ExchangeFailed('reading', `its answer is larger than ${Math.floor(maxBytes / 1024)} KiB`);
    yield chunk;
  }
}

/** RFC 9110 sets no bound. Two is one more than real servers use, and each costs a window of memory. */
const MAX_CODINGS = 2;
/** RFC 9659: decoders of HTTP content must take windows up to 8 MB and need take no more. */
const ZSTD_WINDOW_LOG = 23;

/** The decoders in the order of decoding: the coding named last was applied last (RFC 9110, 8.4). */
function decodersOf(contentEncoding = ''): Decoder[] {
  const names = contentEncoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > MAX_CODINGS) throw new ExchangeFailed('reading', 'its answer has too many content codings');
  return names.reverse().map(decoderOf);
}

function decoderOf(name: string): Decoder {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip();
  if (name === 'br') return createBrotliDecompress();
  if (name === 'zstd') return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
  if (name === 'deflate') return inflateEither;
  throw new ExchangeFailed('reading', 'its answer has an unknown content coding');
}

/** Servers send `deflate` with and without zlib's frame; a frame begins with compression method 8 (RFC 1950, 2.2). */
async function* inflateEither(source: Chunks): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  let first = await chunks.next();
  while (!first.done && first.value.length === 0) first = await chunks.next();
  if (first.done) return;
  const head = first.value;
  const inflate = ((head[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
  const rest = { [Symbol.asyncIterator]: () => chunks };
  async function* whole() {
    yield head;
    yield* rest;
  }
  // The callback's error is the one that reading `inflate` throws.
  yield* pipeline(Readable.from(whole()), inflate, () => undefined);
}

function isCodingFault(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(Z_|ERR_?_|ZSTD_)/.test(code) && !code.startsWith('ERR_STREAM');
}

/** JSON's own types, with +json (DNS: -json), and the wrong ones that servers of JSON send. A web page's is not one. */
const JSON_TYPE =
  /^(application\/([\w.+-]+[+-])?json|text\/(json|plain|javascript)|application\/(javascript|octet-stream|x-javascript))\s*(;|$)/i;

/** The parsed body. Throws UpstreamFailed for another content type, no JSON, and JSON that does not fit the schema. */
export function parseJson<T>(upstream: string, contentType: string | undefined, body: Buffer, schema: z.ZodType<T>): T {
  if (contentType !== undefined && !JSON_TYPE.test(contentType)) {
    throw new UpstreamFailed(upstream, `answered ${mediaTypeOf(contentType)} instead of JSON`);
  }
  const parsed = schema.safeParse(readJson(upstream, body));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UpstreamFailed(
    upstream,
    `answered JSON of an unexpected shape (${issue?.path.join('.') || 'at the top'})`,
    parsed.error,
  );
}

function readJson(upstream: string, body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new UpstreamFailed(upstream, 'answered what is not JSON', cause);
  }
}

/** Without parameters, in safe characters, because messages show it. */
export function mediaTypeOf(contentType: string): string {
  const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type.slice(0, 100) : 'an unnamed type';
}
