import { describe, expect, test } from 'vitest';
import { boundMarkup } from '../../../../src/upstream/web/page.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const MANY = 1e9;
/** The least bound under which the markup is whole. */
const tokensOf = (html: string) =>
  Array.from({ length: 30 }, (_, bound) => bound).find((bound) => !boundMarkup(html, bound).cut);

test.each([
  ['<p>a &amp; b</p>', 4],
  ['<p a b c>', 4],
  [`<p a=b c = "x y z" d='q r'>`, 7],
  ['<p a="1"b="2">', 4],
  ['<p/a/b/c>', 4],
  // A quote in a name is part of it: what follows are attributes, not a value.
  [`<p a'b c d e>`, 5],
  [`<p a"b c d e>`, 5],
])('%s counts for at least what it makes: %d', (html, tokens) => {
  expect(tokensOf(html)).toBe(tokens);
  expect(boundMarkup(html, MANY)).toEqual({ html, cut: false });
});

test.each([
  ['a<script src=x>if (a<b && c) {}</script>b', 'ab'],
  ['a<STYLE>p{}</style >b', 'ab'],
  ['a<script>never ends', 'a'],
  ['a<style></style', 'a'],
  ['a<scripty>b', 'a<scripty>b'],
  ['a<script', 'a<script'],
])('%s loses its code and nothing else', (html, rest) => {
  expect(boundMarkup(html, MANY).html).toBe(rest);
});

test('too much is cut at the end', () => {
  const { html, cut } = boundMarkup('<p>x</p>'.repeat(1000), 100);
  expect(cut).toBe(true);
  expect(html.startsWith('<p>x</p>')).toBe(true);
  expect(html.length).toBeLessThan(8 * 60);
});

describe('is done in time that grows with the length alone', () => {
  test.each(['<script', '<script>', '<style ', '</style', '<p a="', "<p a='", '<', '&', 'a ', '<p a '])(
    '%s, over and over',
    (piece) => {
      const html = `<style ${piece.repeat(3_000_000 / piece.length)}`;
      const bound = () => {
        boundMarkup(html, MANY);
        boundMarkup(html.slice(7), MANY);
      };
      expect(cpuTimeMs(1500, bound)).toBeLessThan(1500);
    },
  );
});
