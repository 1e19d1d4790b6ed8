import { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readBody } from '../../../../src/upstream/client/exchange.ts';

const signal = new AbortController().signal;
const text = Buffer.from('forty-two bytes of text, or rather more. '.repeat(500));
const CAP = 1024 * 1024;

function inPieces(bytes: Buffer, size = 1000): Readable {
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
    bytes.subarray(n * size, (n + 1) * size),
  );
  return Readable.from(pieces);
}

const read = (bytes: Buffer, coding?: string, cap = CAP) => readBody(inPieces(bytes), coding, cap, signal);

test.each([
  [undefined, text],
  ['identity', text],
  ['gzip', zlib.gzipSync(text)],
  ['x-gzip', zlib.gzipSync(text)],
  ['GZIP', zlib.gzipSync(text)],
  ['gzip', Buffer.concat([zlib.gzipSync(text.subarray(0, 99)), zlib.gzipSync(text.subarray(99))])],
  ['deflate', zlib.deflateSync(text)],
  ['deflate', zlib.deflateRawSync(text)],
  ['br', zlib.brotliCompressSync(text)],
  ['zstd', zlib.zstdCompressSync(text)],
  ['br, gzip', zlib.gzipSync(zlib.brotliCompressSync(text))],
])('undoes %s', async (coding, bytes) => {
  expect((await read(bytes, coding)).equals(text)).toBe(true);
});

describe('a wrong content coding', () => {
  test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, br'])('fails: %s', async (coding) => {
    await expect(read(text, coding)).rejects.toThrow('its answer is not encoded as it says');
  });

  test.each([
    ['gzip', zlib.gzipSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['zstd', zlib.zstdCompressSync(text)],
  ])('fails: %s cut short', async (coding, bytes) => {
    await expect(read(bytes.subarray(0, bytes.length / 2), coding)).rejects.toThrow('not encoded as it says');
  });

  test('fails: an unknown coding, three codings, a window of 128 MB', async () => {
    await expect(read(text, 'compress')).rejects.toThrow('unknown content coding');
    await expect(read(text, 'gzip, gzip, gzip')).rejects.toThrow('too many content codings');
    const params = { [zlib.constants.ZSTD_c_windowLog]: 27, [zlib.constants.ZSTD_c_contentSizeFlag]: 0 };
    const stream = zlib.createZstdCompress({ params });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.end(Buffer.alloc(300_000, 'abc'));
    await new Promise((resolve) => stream.once('end', resolve));
    await expect(read(Buffer.concat(chunks), 'zstd')).rejects.toThrow('not encoded as it says');
  });
});

describe('the cap', () => {
  test('holds for plain bytes, to the byte', async () => {
    expect(await read(text, undefined, text.length)).toHaveLength(text.length);
    await expect(read(text, undefined, text.length - 1)).rejects.toThrow('larger than');
  });

  test.each([
    ['gzip', zlib.gzipSync],
    ['deflate', zlib.deflateSync],
    // At its default of 11 it would take longer than all else here.
    ['br', (bytes: Buffer) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['zstd', zlib.zstdCompressSync],
    ['gzip, gzip', (bytes: Buffer) => zlib.gzipSync(zlib.gzipSync(bytes))],
  ] as const)('stops a decompression bomb in %s before it is unpacked', async (coding, pack) => {
    const bomb = pack(Buffer.alloc(64 * CAP));
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 1);
    await expect(read(bomb, coding)).rejects.toThrow('larger than 1024 KiB');
    clearInterval(watch);
    expect(most).toBeLessThan(16 * CAP);
  });
});

test('an abort ends the reading with its own reason', async () => {
  const control = new AbortController();
  const endless = new Readable({ read: () => undefined });
  const reading = readBody(endless, 'gzip', CAP, control.signal);
  control.abort(new Error('enough'));
  await expect(reading).rejects.toThrow('enough');
  expect(endless.destroyed).toBe(true);
});
