import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { listedPath, surfacesOf } from '../../../src/catalogue/paths.ts';
import { paidDetail } from '../../../src/endpoints/fields.ts';
import { putBlocks } from '../../support/chain/chain-rows.ts';
import { UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const sold = catalogue.filter((endpoint) => endpoint.freeSummary && surfacesOf(endpoint).includes('paid'));

test('there are free summaries with a priced detail', () => {
  expect(sold.length).toBeGreaterThanOrEqual(5);
});

test.each(sold)('the free summary of $path links to it with its price, and says what it adds', async (endpoint) => {
  const free = catalogue.find((candidate) => listedPath(candidate) === endpoint.freeSummary)!;
  putBlocks(given().db, [{ number: 1000, at: UNTIL }]);
  const reply = await run(free as never, given().sources, free.params.parse({}));
  expect(reply.detail).toEqual({
    path: listedPath(endpoint),
    priceUsd: endpoint.price?.usd,
    adds: expect.stringMatching(/^.{30,200}$/),
  });
});

test('a free endpoint is no priced detail', () => {
  const free = catalogue.find(({ access }) => access === 'free')!;
  expect(() => paidDetail(free, 'nothing')).toThrow(`${free.path} is free`);
});
