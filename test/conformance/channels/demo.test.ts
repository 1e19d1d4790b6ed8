import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { embeddedEnvironment } from '../../../dev/serve.ts';
import { buyByChannel } from '../../../scripts/lib/demo/buy-by-channel.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { balanceOf } from '../../support/usdc/buyer.ts';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  const env = {
    ...embeddedEnvironment(network, { channels: true }),
    RECONCILE_INTERVAL_MS: '200',
    PRICES: 'fees/estimate=0.0005',
  };
  service = await startService(network, { env });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

test('the demonstration’s buyer pays for its calls alone, and is told what each costs the seller', async () => {
  const before = await balanceOf(network, network.buyer.address);
  const lines: string[] = [];
  await buyByChannel({
    network,
    buyer: network.buyer,
    origin: service.origin,
    path: '/v1/paid/fees/estimate',
    calls: 5,
    say: (line: string) => lines.push(line),
    stopping: new AbortController().signal,
  });
  const text = lines.join('\n');
  expect(text).toContain('batch-settlement: 0.0005 USDC a call, from a deposit of 1 USDC');
  expect(text).toContain('refund: 0.9975 USDC to the buyer');
  expect(text).toContain('claim: 0.0025 USDC for the seller, in the same transaction');
  expect(text).toContain('the buyer paid 0.0025 USDC: 5 times the price');
  // At 20 gwei, the least that Arc takes, a deposit, a claim and a refund cost more than 0.004 USDC.
  const each = Number(/a call costs the seller ([\d.]+) USDC/.exec(text)?.[1]);
  expect(each).toBeGreaterThan(0.004 / 5);
  expect(each).toBeLessThan(0.01 / 5);
  expect(lines.length).toBeLessThanOrEqual(12);
  expect(before - (await balanceOf(network, network.buyer.address))).toBe(2_500n);
});
