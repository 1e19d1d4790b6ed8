import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { Unavailable } from '../../../src/errors.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { newBuyer, present } from '../../support/usdc/buyer.ts';

// A route whose endpoint lacks its configuration: it asks for no payment and looks at none, and what was bought before is given out.

const PATH = '/v1/paid/test/moody';
const { endpoint } = moodyEndpoint();
let isMissing = false;
const notConfigured = () => (isMissing ? new Unavailable('test_unavailable', 'It lacks something.', 3600) : null);
const catalogue = [{ ...endpoint, notConfigured }];

const dataDir = mkdtempSync(join(tmpdir(), 'percall-'));
let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  service = await startService(network, { catalogue, dataDir });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

test('it answers 503 with and without a payment, and a payment from before gets its answer', async () => {
  const buyer = await newBuyer(network);
  const [before, later] = [await buyer.sign(service.origin, PATH), await buyer.sign(service.origin, PATH)];
  const bought = await present(service.origin, PATH, before);
  expect(bought.status).toBe(200);

  isMissing = true;
  await service.stop();
  service = await startService(network, { catalogue, dataDir });
  const missing = [await service.get(PATH), await present(service.origin, PATH, later)];
  for (const { status, headers, body } of missing) {
    expect([status, JSON.parse(body)]).toMatchObject([503, { code: 'test_unavailable', charged: false }]);
    expect([headers['retry-after'], headers['payment-required']]).toEqual(['3600', undefined]);
  }
  expect((await present(service.origin, PATH, before)).body).toBe(bought.body);
});
