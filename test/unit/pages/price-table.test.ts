import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { entriesOn, listedPath, pathOn } from '../../../src/catalogue/paths.ts';
import { markupOf } from '../../../src/pages/html.ts';
import { renderFreeRoutes, renderPrices } from '../../../src/pages/landing.ts';

const OPENAPI = join(import.meta.dirname, '../../../openapi/openapi.json');
const rows = [
  ...markupOf(renderPrices(catalogue)).matchAll(
    /<tr><th scope="row" class="route"><a [^>]+><code>([^<]+)<.*?class="number">([^<]+)</g,
  ),
];

test('every priced route is in the table once, with the catalogue’s price', () => {
  const sold = catalogue.filter(({ access }) => access === 'paid');
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.map(([, path, price]) => `${path} ${price}`).sort()).toEqual(
    sold.map((entry) => `${listedPath(entry)} ${entry.price?.usd}`).sort(),
  );
});

test('every priced route is a link to its operation in the reference', () => {
  const links = [...markupOf(renderPrices(catalogue)).matchAll(/href="\/docs#(\w+)"/g)].map(([, id]) => id);
  expect(links).toHaveLength(rows.length);
  for (const id of links) expect(readFileSync(OPENAPI, 'utf8')).toContain(`"operationId": "${id}"`);
});

test('a route that is sold on one rail only says so', () => {
  const text = markupOf(renderPrices(catalogue));
  for (const entry of catalogue.filter(({ onlyOn }) => onlyOn !== undefined)) {
    const row = text.split('<tr>').find((part) => part.includes(listedPath(entry)));
    expect(row).toContain(entry.onlyOn === 'paid' ? 'USDC only' : 'bitcoin only');
  }
  expect(text.match(/ only</g)).toHaveLength(catalogue.filter(({ onlyOn }) => onlyOn !== undefined).length);
});

test('an unknown family is not left out', () => {
  const [entry] = catalogue.filter(({ access }) => access === 'paid');
  if (!entry) throw new Error('nothing is sold');
  const text = markupOf(renderPrices([{ ...entry, path: '/novel/thing' }]));
  expect(text).toContain('>novel</th>');
  expect(text).toContain('/novel/thing');
});

test('every free route is a link', () => {
  const links = [...markupOf(renderFreeRoutes(catalogue)).matchAll(/href="([^"]+)"/g)].map(([, path]) => path);
  expect(links).toEqual(entriesOn(catalogue, 'free').map((entry) => pathOn(entry, 'free')));
});
