import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { countRunningTime } from '../../support/running-time.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { facilitator, tools } from './mistakes/facilitator.ts';
import { type Bench, chargedOf, type Mistake, sentencesOf } from './mistakes/mistake.ts';
import { overLightning, refused, unreadable } from './mistakes/payments.ts';
import { addresses, parameters } from './mistakes/requests.ts';

// The mistakes of a newcomer. Each answer must name what is wrong and say what to do.

const MISTAKES: Readonly<Record<string, readonly Mistake[]>> = {
  'an address that is not served': addresses,
  'parameters or a body that are wrong': parameters,
  'a payment that cannot be read': unreadable,
  'a payment in USDC that cannot be taken': refused,
  'a payment in bitcoin that cannot be taken': overLightning,
  'a call of the facilitator': facilitator,
  'a call of a tool': tools,
};

countRunningTime();

let network: EmbeddedNetwork;
let service: Service;
let bench: Bench;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true, dex: true });
  service = await startService(network, { env: { NETWORK_NAME: 'Arc', FACILITATOR_PER_MINUTE: '0' } });
  bench = { origin: service.origin, network };
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

describe.each(Object.entries(MISTAKES))('%s', (_kind, mistakes) => {
  test.each(mistakes)('a newcomer who $title is told what is wrong and what to do', async (mistake) => {
    const answer = await mistake.ask(bench);
    const told = sentencesOf(answer);
    expect([answer.status, chargedOf(answer)], answer.body).toEqual([mistake.status, mistake.charged]);
    expect(told).toMatch(mistake.wrong);
    expect(told).toMatch(mistake.next);
  });
});

test('the table has more than fifty mistakes, each once', () => {
  const titles = Object.values(MISTAKES).flatMap((mistakes) => mistakes.map(({ title }) => title));
  expect(new Set(titles).size).toBe(titles.length);
  expect(titles.length).toBeGreaterThan(50);
});

test('a payment that is sent to a free route is not taken, and the answer is the free one', async () => {
  const { status, headers } = await service.get('/v1/fees/estimate', { headers: { 'payment-signature': 'e30=' } });
  expect([status, headers['payment-response']]).toEqual([200, undefined]);
});

test('a free route answers JSON to a client that accepts only what the service does not serve', async () => {
  const { status, headers } = await service.get('/v1/fees/estimate', { headers: { accept: 'application/xml' } });
  expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
});
