import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ dex: true });
  service = await startService(network);
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

test('a symbol that is not watched is 400 with the watched ones, before the payment is looked at', async () => {
  const path = '/v1/paid/fx/execution';
  const broke = await newBuyer(network, 0n);
  const payment = await broke.sign(service.origin, path);
  const answer = await present(service.origin, `${path}?symbol=NOPE`, payment);
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.body)).toMatchObject({ charged: false, errors: [{ path: 'symbol' }] });
  // A watched symbol gets as far as the check of the empty balance.
  expect((await present(service.origin, `${path}?symbol=EURC`, payment)).status).toBe(402);
});
