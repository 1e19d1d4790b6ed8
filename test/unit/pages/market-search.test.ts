import { describe, expect, test } from 'vitest';
import { markupOf } from '../../../src/pages/html.ts';
import { readForm, readSearch, renderSearchForm } from '../../../src/pages/market.ts';

describe('the search form', () => {
  test('ignores empty and unknown fields', () => {
    const asked = readForm({ q: '', source: '', maxPriceUsd: ' ', limit: ' ', other: '1', __proto__: null });
    expect(asked).toEqual({ q: '', source: '', maxPriceUsd: '', limit: '', offset: '' });
    expect(readSearch(asked)).toEqual({ q: '', limit: 50, offset: 0 });
  });

  test('takes a limit and an offset, and the first of repeated values', () => {
    const asked = readForm({ q: ['fees', 'other'], source: 'own', maxPriceUsd: '0.01', limit: '5', offset: '10' });
    expect(readSearch(asked)).toEqual({ q: 'fees', source: 'own', maxPriceUsd: '0.01', limit: 5, offset: 10 });
  });

  test('names the field with the fault, and keeps the typed values', () => {
    const asked = readForm({ q: 'x'.repeat(201), source: 'nobody', maxPriceUsd: '<1>' });
    const faults = readSearch(asked);
    if ('limit' in faults) throw new Error('it was taken');
    expect(faults.map(({ path }) => path).sort()).toEqual(['maxPriceUsd', 'q', 'source']);
    const text = markupOf(renderSearchForm(asked, faults));
    expect(text.match(/aria-invalid="true"/g)).toHaveLength(3);
    expect(text).toContain('id="maxPriceUsd-fault">a decimal number');
    expect(text).toContain('value="&lt;1&gt;"');
  });
});
