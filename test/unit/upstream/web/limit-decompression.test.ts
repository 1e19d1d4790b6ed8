import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { limitDecompression } from '../../../../src/upstream/web/page-worker.ts';

const { DecompressionStream: unbounded } = globalThis;
afterEach(() => {
  globalThis.DecompressionStream = unbounded;
});

const MAX_BYTES = 100_000;

/** What a reader gets from a stream, in bytes, and the error after it. */
async function inflate(compressed: Uint8Array<ArrayBuffer>, format: 'deflate' | 'gzip' = 'deflate') {
  let bytes = 0;
  try {
    for await (const chunk of new Blob([compressed]).stream().pipeThrough(new DecompressionStream(format)))
      bytes += chunk.length;
  } catch (error) {
    return { bytes, error };
  }
  return { bytes, error: null };
}

const zeros = (bytes: number) => Uint8Array.from(deflateSync(Buffer.alloc(bytes)));

test('a stream that decodes to as much as allowed is read whole, and each stream counts for itself', async () => {
  let calls = 0;
  limitDecompression(MAX_BYTES, () => calls++);
  expect(await inflate(zeros(MAX_BYTES))).toEqual({ bytes: MAX_BYTES, error: null });
  expect(await inflate(zeros(MAX_BYTES))).toEqual({ bytes: MAX_BYTES, error: null });
  expect(await inflate(Uint8Array.from(gzipSync(Buffer.alloc(9))), 'gzip')).toEqual({ bytes: 9, error: null });
  expect(calls).toBe(0);
});

test('a stream that decodes to one byte more is told once and fails, and no more than allowed comes out of it', async () => {
  let calls = 0;
  limitDecompression(MAX_BYTES, () => calls++);
  const { bytes, error } = await inflate(zeros(MAX_BYTES + 1));
  expect(error).toBeInstanceOf(RangeError);
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  expect((await inflate(zeros(MAX_BYTES * 100))).bytes).toBeLessThanOrEqual(MAX_BYTES);
  expect(calls).toBe(2);
});

test('a stream that is broken fails as it does without a bound', async () => {
  let calls = 0;
  const broken = Uint8Array.from([1, 2, 3]);
  const { error: before } = await inflate(broken);
  limitDecompression(MAX_BYTES, () => calls++);
  const { error } = await inflate(broken);
  expect((error as Error).name).toBe((before as Error).name);
  expect(calls).toBe(0);
});
