import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type RpcProxy, startRpcProxy } from '../../support/chain/rpc-proxy.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';

let network: EmbeddedNetwork;
let proxy: RpcProxy;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  proxy = await startRpcProxy(network.rpcUrl);
  service = await startService(network, { env: { RPC_URLS: proxy.url, COLLECTOR_POLL_MS: '100' } });
  await until('a block is collected', () => service.deps.sources.collector.status().collected !== null);
});
afterAll(async () => {
  await service?.stop();
  await proxy?.stop();
  await network?.stop();
});

test('while the only provider is away, network and the free estimate answer from collected blocks, with their age', async () => {
  expect(JSON.parse((await service.get('/v1/network')).body).source.name).toContain('JSON-RPC');
  await proxy.stop();
  const [head, estimate] = await Promise.all(['/v1/network', '/v1/fees/estimate?gas=21000'].map(untilCollected));
  const collected = service.deps.sources.collector.status();
  expect(head).toMatchObject({
    head: { number: collected.head?.number, hash: collected.head?.hash, ageSeconds: expect.any(Number) },
    blocksCollected: collected.blocksCollected,
  });
  expect(estimate).toMatchObject({
    baseFeeGwei: '20',
    asOfBlock: collected.collected?.number,
    ageSeconds: expect.any(Number),
  });
});

/** Asks until the answer is no kept one of a live read: those are kept for five seconds at the longest. */
async function untilCollected(path: string): Promise<{ source: { name: string } }> {
  let reply: { source: { name: string } } | undefined;
  await until(`${path} answers from collected blocks`, async () => {
    const { status, body } = await service.get(path);
    expect([path, status]).toEqual([path, 200]);
    reply = JSON.parse(body) as { source: { name: string } };
    return reply.source.name.startsWith('Collected');
  });
  return reply as { source: { name: string } };
}
