import { expect, test } from 'vitest';
import { askWithCurl, payInTypeScript, readInPython } from '../../../src/pages/examples.ts';
import { highlight, markupOf } from '../../../src/pages/html.ts';

const TERMS = { origin: 'https://api.example', network: 'eip155:5042', asset: `0x36${'0'.repeat(38)}` };
const CALL = { path: '/v1/paid/chain/wallet?address=0x36', ceiling: '5000' };
const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
const readBack = (markup: string) =>
  markup.replace(/<[^>]+>/g, '').replace(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? '?');

test('copying highlighted code gives the code', () => {
  for (const code of [
    payInTypeScript(TERMS, CALL),
    askWithCurl(TERMS, CALL),
    readInPython(TERMS),
    "a < b && 'it''s' `x`",
  ]) {
    expect(readBack(markupOf(highlight(code)))).toBe(code);
  }
});

test('keywords and strings differ, and a keyword inside a string is none', () => {
  expect(markupOf(highlight("import { a } from 'as b';"))).toBe(
    '<span class="word">import</span> { a } <span class="word">from</span> <span class="text">&#39;as b&#39;</span>;',
  );
});
