import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isListedTld, parseHostName, registrableDomain } from '../../../../src/lib/url.ts';

test.each([
  ['example.com', 'example.com'],
  ['a.b.example.co.uk', 'example.co.uk'],
  ['co.uk', null],
  // The private section is off: to the registry of io this is a domain like any other.
  ['someone.github.io', 'github.io'],
  ['www.city.kobe.jp', 'city.kobe.jp'],
  ['www.ck', 'www.ck'],
  ['x.ck', null],
  ['xn--85x722f.xn--55qx5d.cn', 'xn--85x722f.xn--55qx5d.cn'],
  ['a.b.not-on-the-list', 'b.not-on-the-list'],
])('%s is registered as %s', (name, domain) => {
  expect(registrableDomain(name)).toBe(domain);
});

test.each([
  ['com', true],
  ['ck', true],
  ['er', true],
  ['xn--p1ai', true],
  ['nothing', false],
  ['xn--nothing', false],
  // It is in the private section alone.
  ['github', false],
])('the top-level domain %s is listed: %s', (tld, listed) => {
  expect(isListedTld(tld)).toBe(listed);
});

const VECTORS = join(import.meta.dirname, '../../../../../shared/samples/psl/tests.txt');

describe.skipIf(!existsSync(VECTORS))(
  "the Public Suffix List's own vectors (skipped where ../shared is absent)",
  () => {
    /** Names that only its private section splits further; ours are the registry's view. */
    const PRIVATE: Record<string, string> = {
      'uk.com': 'uk.com',
      'example.uk.com': 'uk.com',
      'b.example.uk.com': 'uk.com',
      'a.b.example.uk.com': 'uk.com',
    };
    const vectors = (existsSync(VECTORS) ? readFileSync(VECTORS, 'utf8') : '')
      .split('\n')
      .filter((line) => /^[^\s/]+ \S+$/.test(line))
      .map((line) => line.split(' ') as [string, string]);

    test('are there', () => {
      expect(vectors.length).toBeGreaterThan(60);
    });

    test.each(vectors)('%s: %s', (text, expected) => {
      const parsed = parseHostName(text);
      const found = 'name' in parsed ? registrableDomain(parsed.name) : null;
      const ascii = expected === 'null' ? null : parseHostName(expected);
      const wanted = PRIVATE[text] ?? (ascii && 'name' in ascii ? ascii.name : null);
      expect(found).toBe(wanted);
    });
  },
);
