import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../src/embedded/network.ts';
import { UpstreamFailed } from '../../src/errors.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLedger } from '../../src/payment/ledger.ts';
import { openSqliteStores } from '../../src/store/sqlite/open-stores.ts';
import { moodyEndpoint } from '../support/service/moody-endpoint.ts';
import { type Answer, type Service, startService } from '../support/service/service.ts';
import { until, usesOf } from '../support/service/workers.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';

const PATH = '/v1/paid/test/moody';
/** Long enough for the test to act while a handler runs. */
const SLOW_MS = 400;
const moody = moodyEndpoint();

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network, { catalogue: [moody.endpoint], env: { COLLECTOR: 'off' } });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

/** Does what another instance does after it marked this one dead. */
async function takeOver(): Promise<number> {
  const stores = openSqliteStores(join(service.dataDir, 'ledger.db'));
  const limits = { storeBytes: 1000, keepSeconds: 1, maxDeliveries: 1, maxOpen: 0 };
  const ledger = createLedger({ store: stores.payments, clock: systemClock, bootId: 'another', ...limits });
  const { released } = await ledger.recover();
  await stores.close();
  return released;
}

/** Presents a payment whose handler is slow. `meanwhile` runs at the same time. */
async function sell(payment: { header: string }, meanwhile: () => Promise<unknown>): Promise<Answer> {
  const before = moody.runs();
  moody.slow(SLOW_MS);
  const answer = present(service.origin, PATH, payment);
  await until('its handler runs', () => moody.runs() > before);
  await meanwhile();
  const received = await answer;
  moody.slow(0);
  return received;
}

const outcomeOf = ({ status, body }: Answer) => {
  const { code, charged } = JSON.parse(body) as { code?: string; charged?: unknown };
  return [status, code, charged];
};

const FAILED = [502, 'upstream_failed', false];
const UNKNOWN = [503, 'settlement_unknown', 'unknown'];

test.each([
  ['succeeds', 'is there', [200, undefined, undefined], false],
  ['fails', 'is there', FAILED, false],
  ['succeeds', 'was taken away meanwhile', UNKNOWN, true],
  ['fails', 'was taken away meanwhile', UNKNOWN, true],
] as const)(
  'a handler that %s while its reservation %s is answered %j, and the same payment buys once',
  async (how, _where, answered, isTaken) => {
    const payment = await (await newBuyer(network)).sign(service.origin, PATH);
    if (how === 'fails') moody.fail(new UpstreamFailed('test', 'moody'), 1);
    const received = await sell(payment, async () => {
      if (isTaken) expect(await takeOver()).toBe(1);
    });
    expect(outcomeOf(received)).toEqual(answered);
    expect(await usesOf(network, payment)).toBe(received.status === 200 ? 1 : 0);
    expect((await present(service.origin, PATH, payment)).status).toBe(200);
    expect(await usesOf(network, payment)).toBe(1);
  },
);
