import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { freePort, nextFreePort } from '../../../dev/child.ts';
import { besideOperators } from '../../../dev/serve.ts';

describe('the environment of a service on an embedded network', () => {
  const embedded = { CHAIN_ID: '5042', RPC_URLS: 'http://127.0.0.1:1', RATE_LIMIT_FREE_PER_MINUTE: '0' };

  test('keeps the limits that the operator sets', () => {
    const { environment, ignored } = besideOperators({ RATE_LIMIT_FREE_PER_MINUTE: '5', LOG_LEVEL: 'warn' }, embedded);
    expect(environment).toEqual({ CHAIN_ID: '5042', RPC_URLS: 'http://127.0.0.1:1' });
    expect(ignored).toEqual([]);
  });

  test('names the keys that the network sets in spite of the operator', () => {
    const given = { RPC_URLS: 'https://rpc.example', CHAIN_ID: '5042', DATA_DIR: '' };
    const { environment, ignored } = besideOperators(given, { ...embedded, DATA_DIR: '/tmp/one' });
    expect(environment).toEqual({ ...embedded, DATA_DIR: '/tmp/one' });
    expect(ignored).toEqual(['RPC_URLS']);
  });
});

describe('the port of a demonstration', () => {
  const servers: ReturnType<typeof createServer>[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  test('is the next free one where another program has the first', async () => {
    const first = await freePort();
    const taken = createServer().listen(first, '127.0.0.1');
    servers.push(taken);
    await once(taken, 'listening');
    const next = await nextFreePort(first);
    expect(next).toBeGreaterThan(first);
    await expect(nextFreePort(first, 0)).rejects.toThrow(`port ${first} cannot be served on`);
    expect(await nextFreePort(next)).toBe(next);
  });
});
