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
import { describeFailure, ExchangeFailed } from './failure.ts';

/** The content codings that we decode, as offered to servers. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd';

/** RFC 9110 sets no bound. Two is one more than real servers use, and each costs a window of memory. */
const MAX_CODINGS = 2;
/** RFC 9659: decoders of HTTP content must take windows up to 8 MB and need take no more. */
const ZSTD_WINDOW_LOG = 23;

type Chunks = AsyncIterable<Buffer>;
type Decoder = Transform | ((source: Chunks) => Chunks);

/**
 * Reads and decodes a body to its end. Fails as soon as it holds more than `maxBytes`, before or after decoding.
 * It counts while it streams, so that a decompression bomb costs at most one chunk more than the cap.
 */
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
    throw signal.aborted ? signal.reason : isCodingFault(error) ? badCoding(error) : describeFailure(error, true);
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

function badCoding(error: unknown): ExchangeFailed {
  return new ExchangeFailed('reading', 'its answer is not encoded as it says', error);
}
