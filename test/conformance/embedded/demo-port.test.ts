import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { startEmbeddedService } from '../../../dev/serve.ts';
import { startOnFreePort } from '../../../scripts/lib/demo/start-service.ts';
import { ownPort } from '../../support/service/own-port.ts';

let network: EmbeddedNetwork;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
});
afterAll(() => network?.stop());

test('a demo whose port another demo takes meanwhile serves on the next one, and never buys there', async () => {
  const first = await ownPort();
  const other = createServer((_request, response) => response.end('{"ready":true}'));
  const tried: number[] = [];
  const said: string[] = [];
  const start = async (port: number) => {
    tried.push(port);
    // As another demo: it answers every request with 200, before the service has found its port taken.
    if (tried.length === 1) await once(other.listen(port, '127.0.0.1'), 'listening');
    return startEmbeddedService(network, { port });
  };
  const service = await startOnFreePort({ port: null, first, start, say: (line) => void said.push(line) });
  try {
    expect(tried).toEqual([first, Number(new URL(service.url).port)]);
    expect(service.url).not.toContain(`:${first}`);
    expect(said).toEqual([expect.stringContaining(`port ${first} is taken by another program`)]);
    expect(await (await fetch(`${service.url}/v1/paid`)).text()).toContain(network.seller);
  } finally {
    await service.stop();
    other.close();
  }
});

test('a port that was asked for is the only one that will do', async () => {
  const taken = createServer();
  const port = await ownPort();
  await once(taken.listen(port, '127.0.0.1'), 'listening');
  const start = () => Promise.reject(new Error('not reached'));
  await expect(startOnFreePort({ port, start, say: () => {} })).rejects.toThrow(`port ${port} cannot be served on`);
  taken.close();
});
