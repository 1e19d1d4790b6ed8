import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { expect, test, vi } from 'vitest';

test('time-outs of undici end a request to a silent server while a suite has fake timers', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // Shorter ones do not share undici's timer.
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { headersTimeout: 1100 });
  try {
    await expect(pool.request({ path: '/', method: 'GET' })).rejects.toThrow('Headers Timeout');
  } finally {
    vi.useRealTimers();
    await pool.destroy();
    server.closeAllConnections();
    server.close();
  }
});
