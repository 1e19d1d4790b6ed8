import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { UpstreamFailed } from '../../src/errors.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLedger } from '../../src/payment/ledger.ts';
import { openSqliteStores } from '../../src/store/open.ts';
import { latchedEndpoint } from '../support/service/latch.ts';
import { type Answer, type Service, startService } from '../support/service/service.ts';
import { usesOf } from '../support/service/workers.ts';
import { newBuyer, present } from '../support/usdc/buyer.ts';

const latch = latchedEndpoint();
/** Whether the next run of the handler fails after the latch. */
let fails = false;
const endpoint: typeof latch.endpoint = {
  ...latch.endpoint,
  run: async (...given) => {
    const reply = await latch.endpoint.run(...given);
    if (!fails) return reply;
    fails = false;
    throw new UpstreamFailed('test', 'moody');
  },
};

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network, { catalogue: [endpoint], env: { COLLECTOR: 'off' } });
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

/** Presents a payment. `meanwhile` runs while its handler does. */
async function sell(payment: { header: string }, meanwhile: () => Promise<unknown>): Promise<Answer> {
  latch.close();
  const started = latch.started();
  const answer = present(service.origin, latch.path, payment);
  await started;
  await meanwhile();
  latch.open();
  return answer;
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
    const payment = await (await newBuyer(network)).sign(service.origin, latch.path);
    fails = how === 'fails';
    const received = await sell(payment, async () => {
      if (isTaken) expect(await takeOver()).toBe(1);
    });
    expect(outcomeOf(received)).toEqual(answered);
    expect(await usesOf(network, payment)).toBe(received.status === 200 ? 1 : 0);
    expect((await present(service.origin, latch.path, payment)).status).toBe(200);
    expect(await usesOf(network, payment)).toBe(1);
  },
);
