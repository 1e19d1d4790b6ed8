import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { createAheadClock } from '../../support/ahead-clock.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { type NamesWorld, namesEnvironment, serveFixtures, startNames } from '../../support/upstream/names.ts';
import { FAULTS, type Fault } from '../../support/upstream/replay.ts';
import { balanceOf, buyOnce, newBuyer, present } from '../../support/usdc/buyer.ts';

// The seven routes as a buyer sees them: the mounted service, paid on the embedded network, over stand-ins for every source.

/** Longer than a source is left alone after it has failed too often. */
const REST_MS = 6000;

const clock = createAheadClock();
let network: EmbeddedNetwork;
let world: NamesWorld;
let service: Service;
beforeAll(async () => {
  world = await startNames();
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { env: namesEnvironment(world), clock });
  // Files that all later calls need are read once and kept, so the sources' faults do not concern them.
  serveFixtures(world);
  for (const path of ['/domains/whois?domain=example.com', '/currency/rates?base=EUR&date=2025-12-31'])
    expect((await buy(`/v1/paid${path}`)).answer.status).toBe(200);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
  await world?.stop();
});
beforeEach(async () => {
  world.answers.clear();
  serveFixtures(world);
});

const buy = (path: string) => buyOnce(network, service.origin, path);

async function setFault(fault: Fault | null): Promise<void> {
  await world.first.setFault(fault);
  await world.second.setFault(fault);
}

/** Ends the faults and the rest of each source. A source that has rested gets one request at a time, until it has answered one. */
async function recover(): Promise<void> {
  await setFault(null);
  clock.aheadMs += REST_MS;
  const paths = ['/domains/dns?name=example.com&type=A', '/domains/whois?domain=example.com', '/wiki/search?q=jupiter'];
  for (const path of paths) expect([path, (await buy(`/v1/paid${path}`)).answer.status]).toEqual([path, 200]);
}

describe('a call that is answered', () => {
  test.each([
    ['/domains/dns?name=example.com', { exists: true, records: { A: [{ address: '192.0.2.1' }] } }],
    ['/domains/whois?domain=www.example.com', { domain: 'example.com', registered: true }],
    ['/currency/rates?base=EUR&date=2025-12-31', { date: '2025-12-31', rates: { USD: '1.1' } }],
    ['/currency/convert?from=EUR&to=USD&amount=2.5&date=2025-12-31', { result: '2.75' }],
    ['/wiki/search?q=jupiter', { results: [{ title: 'Jupiter (planet)' }, { title: 'Io' }] }],
    ['/wiki/summary?title=Jupiter', { summary: 'Jupiter is the fifth planet.' }],
    ['/wiki/article?title=Jupiter', { characters: 35, licence: 'CC BY-SA 4.0' }],
  ])('%s costs its price in the catalogue', async (path, expected) => {
    const { answer, body, paid, transfers } = await buy(`/v1/paid${path}`);
    expect([answer.status, paid, transfers]).toEqual([200, priceOf(path).units, 1]);
    expect(body).toMatchObject({ ...expected, source: { retrievedAt: expect.any(Number) } });
  });
});

describe('a call that fails', () => {
  test.each([
    ['/domains/dns?name=10.0.0.1', 400, 'bad_parameter'],
    ['/domains/dns?name=example.com&type=ANY', 400, 'bad_parameter'],
    ['/domains/whois?domain=co.uk', 400, 'bad_parameter'],
    ['/domains/whois?domain=example.nothing', 404, 'no_rdap_for_tld'],
    ['/currency/rates?base=XXX', 400, 'bad_parameter'],
    ['/currency/rates?date=2999-01-01', 400, 'bad_parameter'],
    ['/currency/convert?from=EUR&to=USD&amount=1e3', 400, 'bad_parameter'],
    ['/wiki/search?q=jupiter&lang=xx', 400, 'bad_parameter'],
    ['/wiki/summary?title=Nothing', 404, 'not_found'],
  ])('%s gets %d and is never charged', async (path, status, code) => {
    const { answer, body, paid, transfers } = await buy(`/v1/paid${path}`);
    expect([answer.status, paid, transfers]).toEqual([status, 0n, 0]);
    expect(body).toMatchObject({ status, code, charged: false });
  });

  test('is never charged, however the sources fail', async () => {
    // The ECB's files are kept, so currencies are tested elsewhere.
    const paths = [
      ...['/domains/dns?name=other.example.com', '/domains/whois?domain=other.com'],
      ...['/wiki/search?q=other', '/wiki/summary?title=Other', '/wiki/article?title=Other'],
    ].map((path) => `/v1/paid${path}`);
    const buyer = await newBuyer(network);
    const payments = await Promise.all(paths.map((path) => buyer.sign(service.origin, path)));
    const before = await balanceOf(network, buyer.address);
    try {
      for (const fault of FAULTS) {
        await setFault(fault);
        // Presents the same payments again and again, because a failure leaves them valid.
        const answers = await Promise.all(paths.map((path, at) => present(service.origin, path, payments[at]!)));
        const unexpected = answers.filter(({ status }) => status !== 502 && !(fault === '404' && status === 404));
        expect([fault, unexpected.map(({ status, body }) => `${status} ${body}`)]).toEqual([fault, []]);
        for (const { body } of answers) expect(JSON.parse(body)).toMatchObject({ charged: false });
      }
    } finally {
      await recover();
    }
    expect(await balanceOf(network, buyer.address)).toBe(before);
  });
});
