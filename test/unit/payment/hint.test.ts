import { expect, test } from 'vitest';
import { createHint } from '../../../src/payment/protocol.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';

const endpoint = { ...moodyEndpoint().endpoint, summary: 'Tells the distance.' } as never as Parameters<
  typeof createHint
>[0];
const usd = endpoint.price?.usd;
const ORIGIN = { publicOrigin: 'https://data.example', chain: { name: 'Arc', isPlayMoney: false } };
const TERMS = `This answer costs ${usd} USDC on Arc: pay and repeat the request. How to pay: https://data.example/docs#paidTestMoody.`;
const NONE = { fault: null, refusal: null };
const hint = (request: Parameters<ReturnType<typeof createHint>>[0], of = endpoint, origin = ORIGIN) =>
  createHint(of, 'paid', 'pay and repeat the request.', origin)(request);

test('the hint says what the route sells, the price, the currency and the chain by name, what to do and where to read', () => {
  expect(hint(NONE)).toBe(`Tells the distance. ${TERMS}`);
});

test('the hint says that the money is play money where it is', () => {
  const chain = { name: 'Arc', isPlayMoney: true };
  expect(hint(NONE, endpoint, { ...ORIGIN, chain })).toContain(`costs ${usd} USDC on Arc (demo, play money):`);
});

test('the hint says where a free summary is', () => {
  const freeSummary = '/v1/test/free';
  expect(hint(NONE, { ...endpoint, freeSummary })).toBe(
    `Tells the distance. ${TERMS} Free summary: GET /v1/test/free.`,
  );
});

test('the hint says first what is wrong with the parameters, and that a payment would be refused with 400', () => {
  const fault = 'from is missing';
  expect(hint({ ...NONE, fault })).toBe(
    `from is missing. With a payment this request would be a 400, uncharged: mend it before you sign. ${TERMS}`,
  );
});

test('the hint says first why a payment was refused, and then what is wrong with the parameters', () => {
  const refusal = 'The authorization has expired. Sign a new one.';
  expect(hint({ ...NONE, refusal })).toBe(`${refusal} ${TERMS}`);
  expect(hint({ refusal, fault: 'to is missing' })).toBe(
    `${refusal} to is missing. With a payment this request would be a 400, uncharged: mend it before you sign. ${TERMS}`,
  );
});
