import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { judgeHeaders } from '../../../../src/upstream/web/web.ts';

const judgementOf = (name: string, value: string, https = true) =>
  judgeHeaders({ [name]: value }, https).present.find((header) => header.name === name)?.judgement;
const lackOf = (name: string, headers: Record<string, string> = {}, https = true) =>
  judgeHeaders(headers, https).missing.find((header) => header.name === name)?.judgement;

const HSTS = 'strict-transport-security';
const CSP = 'content-security-policy';

test.each([
  [HSTS, 'max-age=63072000; includeSubDomains; preload', 'good'],
  [HSTS, 'max-age="15768000"', 'good'],
  [HSTS, 'max-age=15767999', 'weak'],
  [HSTS, 'max-age=0', 'weak'],
  [HSTS, 'max-age=63072000, max-age=0', 'invalid'],
  [HSTS, 'includeSubDomains', 'invalid'],
  [CSP, "default-src 'self'", 'good'],
  [CSP, "default-src 'none'; script-src 'nonce-abc' 'unsafe-inline'", 'good'],
  [CSP, "script-src 'strict-dynamic' https: 'nonce-abc'", 'good'],
  [CSP, "default-src 'self'; script-src 'self' 'unsafe-inline'", 'weak'],
  [CSP, "script-src 'self' 'unsafe-eval'", 'weak'],
  [CSP, 'default-src *', 'weak'],
  [CSP, "frame-ancestors 'none'", 'weak'],
  [CSP, ' ; ', 'invalid'],
  ['x-content-type-options', 'nosniff', 'good'],
  ['x-content-type-options', 'sniff', 'invalid'],
  ['x-frame-options', 'SAMEORIGIN', 'good'],
  ['x-frame-options', 'ALLOW-FROM https://example.com/', 'invalid'],
  ['referrer-policy', 'strict-origin-when-cross-origin', 'good'],
  ['referrer-policy', 'no-referrer, unsafe-url, of-the-future', 'weak'],
  ['referrer-policy', 'none', 'invalid'],
  ['permissions-policy', 'camera=()', 'good'],
  ['cross-origin-opener-policy', 'unsafe-none', 'weak'],
  ['cross-origin-embedder-policy', 'require-corp', 'good'],
  ['cross-origin-resource-policy', 'cross-origin', 'weak'],
  ['x-xss-protection', '1; mode=block', 'obsolete'],
  ['feature-policy', 'camera none', 'obsolete'],
])('%s: %s is %s', (name, value, judgement) => {
  expect(judgementOf(name, value)).toBe(judgement);
});

test('an absent header is reported as missing, unless another header or the scheme makes it needless', () => {
  expect(lackOf('x-frame-options')).toBe('needed');
  expect(lackOf('x-frame-options', { [CSP]: "default-src 'self'; frame-ancestors 'none'" })).toBe('covered');
  expect(lackOf(HSTS)).toBe('needed');
  expect(lackOf(HSTS, {}, false)).toBe('inapplicable');
  expect(judgementOf(HSTS, 'max-age=63072000', false)).toBe('ignored');
  expect(lackOf('x-xss-protection')).toBeUndefined();
  expect(lackOf('referrer-policy')).toBe('advised');
});

test('every header is either present or missing, and long values are cut', () => {
  const { present, missing } = judgeHeaders({ [CSP]: `default-src 'self' ${'a.example '.repeat(1000)}` }, true);
  expect(present[0]?.value).toHaveLength(500);
  expect(present.length + missing.length).toBe(9);
});

const SAMPLE = join(import.meta.dirname, '../../../../../shared/samples/web/headers-mozilla.org.json');

describe.skipIf(!existsSync(SAMPLE))('recorded headers (../shared/samples)', () => {
  test('of mozilla.org get the Observatory’s judgements', () => {
    const recorded: unknown = JSON.parse(readFileSync(SAMPLE, 'utf8'));
    const headers = headersIn(recorded);
    const { present } = judgeHeaders(headers, true);
    expect(present.map(({ name }) => name)).toContain(HSTS);
    expect(present.every(({ judgement }) => judgement !== 'invalid')).toBe(true);
  });
});

/** The headers of a recording, wherever it keeps them. */
function headersIn(recorded: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, item] of Object.entries(value)) {
      if (typeof item === 'string') found[key.toLowerCase()] ??= item;
      else visit(item);
    }
  };
  visit(recorded);
  return found;
}
