import { describe, expect, test } from 'vitest';
import { plainText } from '../../../src/lib/untrusted.ts';
import { seed, seededRandom } from '../../support/random.ts';

describe('a third party’s text', () => {
  test.each([
    ['plain words stay', 'Price of tea, in €: 3.50 & more', 'Price of tea, in €: 3.50 & more'],
    ['markup goes', 'a <b>bold</b><script src=x>alert(1)</script> word', 'a bold alert(1) word'],
    ['half a tag goes', 'x <img src=y onerror=z', 'x img src=y onerror=z'],
    ['tags within tags go', '<<b>script>alert(1)<</b>/script>', 'script alert(1) /script'],
    ['comments and declarations go', '<!-- a --><!DOCTYPE html><?php x ?>b', 'b'],
    ['comparisons keep their words', 'at 1 < 2 > 0', 'at 1 2 0'],
    ['lines become one', ' a\r\n\tb\u2028c ', 'a bc'],
    ['control characters go', 'a\u0000\u0007\u001b[31mb\u009fc', 'a[31mbc'],
    ['what turns text around goes', 'abc\u202egpj.exe\u2066\u200b\ufeff', 'abcgpj.exe'],
    ['lone halves become U+FFFD', 'a\ud800b', 'a\ufffdb'],
  ])('%s', (_what, text, expected) => {
    expect(plainText(text, 100)).toBe(expected);
  });

  test.each([[null], [undefined], [7], [{ toString: () => 'x' }], [['x']]])('%j is none', (value) => {
    expect(plainText(value, 10)).toBe('');
  });

  test('is cut with an ellipsis, at any length, never inside a character', () => {
    const text = 'ab😀cd😀ef';
    for (let max = 2; max < 12; max++) {
      const cut = plainText(text, max);
      expect(cut.length).toBeLessThanOrEqual(max);
      expect(cut.isWellFormed()).toBe(true);
      expect(cut.endsWith('…')).toBe(max < text.length);
    }
    expect(plainText('x'.repeat(10_000_000), 5)).toBe('xxxx…');
  });

  test(`cannot become HTML or leave its line (seed ${seed})`, () => {
    const random = seededRandom('texts');
    const parts = [
      '<',
      '>',
      '</',
      'b',
      ' ',
      '!',
      '--',
      '\u202e',
      '\n',
      '\u0000',
      '"',
      'é',
      '\ud800',
      '&lt;',
      '<script>',
    ];
    for (let n = 0; n < 500; n++) {
      const text = Array.from({ length: 20 }, () => parts[Math.floor(random() * parts.length)]).join('');
      expect(plainText(text, 30), JSON.stringify(text)).toMatch(/^[^<>\p{Cc}\p{Cf}]{0,30}$/u);
    }
  });
});
