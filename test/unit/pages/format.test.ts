import { expect, test } from 'vitest';
import { markupOf, shortHash, showLink, showMeasure, showNumber, showTime } from '../../../src/pages/html.ts';

test('a moment is shown in UTC, for people and for programs', () => {
  expect(markupOf(showTime(1_800_000_000))).toBe('<time datetime="2027-01-15T08:00:00Z">2027-01-15 08:00:00</time>');
});

test('an unknown value is never shown as zero', () => {
  expect(markupOf(showMeasure(null, 's'))).toContain('not known');
  expect(markupOf(showMeasure(undefined, 's'))).toContain('not known');
  expect(markupOf(showMeasure(0, 's'))).toBe('0 s');
});

test('numbers have separators and at most two decimals', () => {
  expect([1234567, 99.999, 0.5].map(showNumber)).toEqual(['1,234,567', '100', '0.5']);
});

test('a hash keeps both its ends', () => {
  expect(shortHash(`0x${'ab'.repeat(32)}`)).toBe('0xababab…abab');
  expect(shortHash('0x12')).toBe('0x12');
});

test.each(['javascript:alert(1)', 'data:text/html,x', 'ftp://x.example/', 'x', ''])('%j is no link', (url) => {
  expect(markupOf(showLink(url, 'text'))).toBe('text');
});

test('a third party’s URL is a link that does not reveal our page', () => {
  expect(markupOf(showLink('https://x.example/?a=1&b="', '<x>'))).toBe(
    '<a href="https://x.example/?a=1&amp;b=&quot;" rel="noopener noreferrer nofollow ugc">&lt;x&gt;</a>',
  );
});
