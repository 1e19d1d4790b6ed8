import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEndpoint } from '../../../src/catalogue/endpoint.ts';
import { createHint } from '../../../src/payment/hint.ts';

const endpoint = defineEndpoint({
  path: '/test/hint',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Hint',
  summary: 'Tells the distance.',
  params: z.object({ from: z.string(), to: z.string(), unit: z.enum(['km', 'mi']).default('km') }),
  result: z.strictObject({ km: z.number() }),
  example: { params: { from: 'a', to: 'b' }, result: { km: 1 } },
  run: async () => ({ km: 1 }),
});
const HOW = 'Pay and repeat the request.';
const hint = (query: Record<string, unknown>, of = endpoint) => createHint(of, HOW, (text) => text)(query);

test('the hint says what the route sells and how it is paid for, and nothing else', () => {
  expect(hint({ from: 'a', to: 'b' })).toBe(`Tells the distance. ${HOW}`);
});

test('the hint names the required parameters that are missing or empty, and no optional one', () => {
  expect(hint({})).toBe(`Tells the distance. Missing: from, to. ${HOW}`);
  expect(hint({ from: 'a' })).toBe(`Tells the distance. Missing: to. ${HOW}`);
  expect(hint({ from: '', to: 'b' })).toBe(`Tells the distance. Missing: from. ${HOW}`);
});

test('the hint says where a free summary is', () => {
  const freeSummary = '/v1/test/free';
  expect(hint({ from: 'a', to: 'b' }, { ...endpoint, freeSummary })).toBe(
    `Tells the distance. A free summary is at GET /v1/test/free. ${HOW}`,
  );
});
