import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { entriesOn, pathOn, type Surface } from '../../../src/catalogue/paths.ts';
import { loadConfig } from '../../../src/config.ts';
import { createLlmsText } from '../../../src/http/documents.ts';
import { offersUnder } from '../../../src/wiring/surfaces.ts';
import { ENV } from '../../http/harness.ts';

const offerOf = offersUnder(loadConfig(ENV));
const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
const textAt = (publicOrigin: string, mpp = false, sold: readonly Endpoint<never>[] = catalogue) =>
  createLlmsText({ catalogue: sold, requirementOf, chain: { name: 'Arc', isPlayMoney: true }, publicOrigin, mpp });
const text = textAt('https://here.example');

describe('llms.txt', () => {
  test('has at most 4,000 characters, also under a long address', () => {
    expect(text.length).toBeLessThanOrEqual(4000);
    expect(textAt(`https://${'a'.repeat(63)}.${'b'.repeat(63)}.example`, true).length).toBeLessThanOrEqual(4000);
  });

  test('names required parameters alone where it would be longer, and every route', () => {
    const wide = catalogue.find(({ path }) => path === '/currency/rates');
    const paths = ['/currency/one', '/currency/two', '/currency/three'] as const;
    const more = paths.map((path) => ({ ...wide!, path }));
    const long = textAt('https://here.example', true, [...catalogue, ...more]);
    expect(long.length).toBeLessThanOrEqual(4000);
    for (const { path } of more) expect(long).toContain(`(/v1/paid${path}): `);
    expect(text).toContain('(name* ecosystem version)');
    expect(long).toContain('(name*)');
    expect(long).not.toContain('ecosystem');
  });

  test('keeps the convention: one title, then a quoted summary, then sections with lists of links', () => {
    const [title, blank, summary] = text.split('\n');
    expect([title, blank]).toEqual(['# percall', '']);
    expect(summary).toMatch(/^> .*https:\/\/here\.example.*USDC.*bitcoin/);
    expect(text.match(/^# /gm)).toHaveLength(1);
    const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(['How to pay', 'Priced routes', 'In bitcoin alone', 'Free routes', 'Documents']);
    expect(text.endsWith('\n')).toBe(true);
    expect(text).not.toMatch(/\n{3}|undefined|null,/);
  });

  test('lists every entry once on each surface, with its price and its required parameters', () => {
    const lines = [...text.matchAll(/^- \[[^\]]+\]\((\/v1\/[^)]+)\): (.*)$/gm)].map(([, path, said]) => [path, said]);
    const listed = new Map(lines as [string, string][]);
    const wanted = (surface: Surface) =>
      entriesOn(catalogue, surface).map((endpoint) => [pathOn(endpoint, surface), endpoint] as const);
    const alone = wanted('lightning').filter(([, { onlyOn }]) => onlyOn === 'lightning');
    const entries = [...wanted('paid'), ...alone, ...wanted('free')];
    expect(entries).toHaveLength(catalogue.length);
    for (const [path, { price, label, params }] of entries) {
      const said = listed.get(path);
      expect(said, path).toContain(price ? `${price.usd}, ${label}` : label);
      for (const [name, param] of Object.entries(params.shape)) {
        const mark = param.safeParse(undefined).success ? '' : '*';
        expect(said, path).toMatch(new RegExp(`[( ]${name}${mark ? '\\*' : ''}[ )]`));
      }
    }
    expect(lines.filter(([path]) => path !== '/v1/market/search')).toHaveLength(entries.length);
  });

  test('allows the asset up to the highest price only', () => {
    const most = Math.max(...entriesOn(catalogue, 'paid').map(({ price }) => Number(price?.units)));
    expect(text).toContain(`asset: "${ENV.USDC_ADDRESS}", maxAmountPerPayment: "${most}"`);
  });
});
