import { describe, expect, test } from 'vitest';
import { type HtmlValue, html, markupOf } from '../../../src/pages/html.ts';
import { seed, seededRandom } from '../../support/random.ts';

const text = (...parts: Parameters<typeof html>) => markupOf(html(...parts));

describe('a template', () => {
  test('escapes every value, in content and in attributes', () => {
    const evil = `"><script>alert('&amp;')</script>`;
    expect(text`<p title="${evil}">${evil}</p>`).toBe(
      '<p title="&quot;&gt;&lt;script&gt;alert(&#39;&amp;amp;&#39;)&lt;/script&gt;">&quot;&gt;&lt;script&gt;alert(&#39;&amp;amp;&#39;)&lt;/script&gt;</p>',
    );
  });

  test(`lets no text end an element or an attribute value (seed ${seed})`, () => {
    const random = seededRandom('markup');
    const letters = [...'<>&"\'`= /a\u0000\u2028'];
    for (let round = 0; round < 500; round += 1) {
      const word = Array.from({ length: 12 }, () => letters[Math.floor(random() * letters.length)]).join('');
      expect(text`${word}`).not.toMatch(/[<>"']/);
    }
  });

  test('takes HTML unchanged, lists of it too', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`);
    expect(text`<ul>${items}</ul>`).toBe('<ul><li>a</li><li>&lt;b&gt;</li></ul>');
  });

  test('renders nothing for null and false, and a zero for a zero', () => {
    expect(text`[${null}${undefined}${false}${[]}${''}]`).toBe('[]');
    expect(text`${0}${0n}`).toBe('00');
  });

  test('never takes an outside value as HTML', () => {
    const forged = JSON.parse('{"markup":"<script>","Symbol(markup)":"<script>"}') as HtmlValue;
    expect(() => text`${forged}`).toThrow();
  });
});
