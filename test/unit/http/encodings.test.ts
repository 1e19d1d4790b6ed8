import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { chooseEncoding, encode, encodeWhenAsked } from '../../../src/http/answers.ts';

describe('an encoding', () => {
  test.each([
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br; q=0.000 , gzip;q=0', 'identity'],
    ['br;q=0.001', 'br'],
    ['deflate', 'identity'],
    ['xbr', 'identity'],
    ['*', 'identity'],
  ] as const)('of %j is %s', (header, chosen) => {
    expect(chooseEncoding(header)).toBe(chosen);
  });
});

const TEXT = 'one page, '.repeat(500);
const makers = [
  ['at once', async (text: string) => encode(text, 'text/plain')],
  ['when asked', (text: string) => encodeWhenAsked(Buffer.from(text), 'text/plain').encoded()],
] as const;

describe.each(makers)('a text encoded %s', (_when, make) => {
  test('is the same in every form, and smaller where it is compressed', async () => {
    const { forms, contentType } = await make(TEXT);
    expect(contentType).toBe('text/plain');
    expect(forms.identity.bytes.toString()).toBe(TEXT);
    expect(gunzipSync(forms.gzip.bytes).toString()).toBe(TEXT);
    expect(brotliDecompressSync(forms.br.bytes).toString()).toBe(TEXT);
    expect(forms.gzip.bytes.length).toBeLessThan(TEXT.length / 10);
    expect(forms.br.bytes.length).toBeLessThan(TEXT.length / 10);
  });

  test('has a tag for each form, because a strong tag names bytes', async () => {
    const tags = Object.values((await make(TEXT)).forms).map(({ etag }) => etag);
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/);
  });

  test('has another name and other tags once a byte of it differs', async () => {
    const [one, other] = [await make(TEXT), await make(`${TEXT}.`)];
    expect(other.hash).not.toBe(one.hash);
    expect(other.forms.br.etag).not.toBe(one.forms.br.etag);
  });
});

test('a text encoded on request has its hash before, and is compressed once', async () => {
  const { hash, encoded } = encodeWhenAsked(Buffer.from(TEXT), 'text/plain');
  expect(hash).toBe(encode(TEXT, 'text/plain').hash);
  const [one, other] = await Promise.all([encoded(), encoded()]);
  expect(other).toBe(one);
  expect(one.hash).toBe(hash);
});

test('a text whose compression failed is compressed at the next request', async () => {
  const bytes = Buffer.from(TEXT);
  const { encoded } = encodeWhenAsked(bytes, 'text/plain');
  let failures = 0;
  // As where there is no memory for it: the first to look at the bytes fails.
  Object.defineProperty(bytes, 'length', {
    configurable: true,
    get: () => {
      failures += 1;
      throw new Error('no memory');
    },
  });
  await expect(encoded()).rejects.toThrow('no memory');
  expect(failures).toBe(1);
  Reflect.deleteProperty(bytes, 'length');
  expect((await encoded()).forms.identity.bytes.toString()).toBe(TEXT);
});
