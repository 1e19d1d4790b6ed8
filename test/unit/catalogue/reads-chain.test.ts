import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { readsChain } from '../../../src/catalogue/endpoint.ts';

test('the entries that are said to read the chain are those whose source is the chain', () => {
  const sourceOf = ({ example }: (typeof catalogue)[number]) =>
    (example.result.source as { name?: string } | undefined)?.name ?? '';
  for (const endpoint of catalogue) {
    expect([endpoint.path, readsChain(endpoint)]).toEqual([endpoint.path, sourceOf(endpoint).includes('eip155:5042')]);
  }
});
