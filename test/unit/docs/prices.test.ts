import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { blocksOf, readText } from '../../support/documents.ts';

// Prices stand in the catalogue. Each one that README.md and docs/paying.md state is compared with it. The range in
// README.md's first lines is compared in test/conformance/payment/prices.test.ts.

const readme = readText('README.md');
const paying = readText('docs/paying.md');
const channel = readText('docs/examples/channel.ts');
const priceOf = (path: string) => {
  const price = catalogue.find((entry) => entry.path === path && entry.price)?.price;
  if (!price) throw new Error(`${path} has no price`);
  return price;
};
const dearest = catalogue.reduce((most, { price }) => (price && price.units > most ? price.units : most), 0n);

test('README.md asks and pays the price of the wallet, in base units and in USDC', () => {
  const { units, usd } = priceOf('/chain/wallet');
  const [challenge, receipt] = blocksOf(readme, 'json').map((block) => JSON.parse(block));
  expect([challenge.accepts[0].amount, receipt.amount]).toEqual([String(units), String(units)]);
  expect(readme).toContain(`${units} base units are ${usd} USDC`);
});

test('the hints of docs/paying.md state the prices of their routes', () => {
  const [hints = ''] = blocksOf(paying, 'text');
  const stated = [...hints.matchAll(/^(.*?)[.,] .*This answer costs ([\d.]+) USDC/gm)].map(([, told, usd]) => [
    told,
    usd,
  ]);
  expect(stated).toEqual([
    ['name is missing', priceOf('/packages/npm').usd],
    ['The authorization has expired', priceOf('/fees/estimate').usd],
  ]);
});

test('the ceilings of the programs are the price of the dearest route', () => {
  for (const text of [readme, channel]) expect(text).toContain(`maxAmountPerPayment: '${dearest}'`);
  const [, multiplier = '0'] = /depositMultiplier: (\d+)/.exec(channel) ?? [];
  const usd = Number(dearest) / 1e6;
  expect(paying).toContain(`here ${multiplier} × ${usd} = ${Number(multiplier) * usd} USDC`);
  expect(paying).toContain(`allows deposits up to ${5 * usd} USDC only`);
});
