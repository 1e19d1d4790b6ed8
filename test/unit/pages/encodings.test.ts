import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { chooseEncoding, encode } from '../../../src/pages/encodings.ts';

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

describe('an encoded text', () => {
  const text = 'one page, '.repeat(500);
  const { forms, hash } = encode(text, 'text/plain', 'kept');

  test('is the same in every form, and smaller where it is compressed', () => {
    expect(forms.identity.bytes.toString()).toBe(text);
    expect(gunzipSync(forms.gzip.bytes).toString()).toBe(text);
    expect(brotliDecompressSync(forms.br.bytes).toString()).toBe(text);
    expect(forms.gzip.bytes.length).toBeLessThan(text.length / 10);
    expect(forms.br.bytes.length).toBeLessThan(text.length / 10);
  });

  test('has a tag for each form, because a strong tag names bytes', () => {
    const tags = Object.values(forms).map(({ etag }) => etag);
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/);
  });

  test('has another name and other tags once a byte of it differs', () => {
    const other = encode(`${text}.`, 'text/plain', 'kept');
    expect(other.hash).not.toBe(hash);
    expect(other.forms.br.etag).not.toBe(forms.br.etag);
  });
});
