import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createHeads, watchHeads } from '../../../../src/chain/rpc/heads.ts';

const TIMEOUT = { timeout: 60_000, interval: 5 };
const log = { info: () => undefined, warn: () => undefined };
const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0)) await close();
});

/** A node's websocket: counts connections and subscriptions, and sends heads when the test calls `send`. */
async function startNode() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const subscribed: WebSocket[] = [];
  let connections = 0;
  server.on('connection', (socket) => {
    connections++;
    socket.on('message', (text) => {
      if (String(text).includes('newHeads')) subscribed.push(socket);
    });
  });
  closing.push(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const head = (number: number) =>
    JSON.stringify({ method: 'eth_subscription', params: { result: { number: `0x${number.toString(16)}` } } });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    subscribed: () => vi.waitFor(() => expect(subscribed.length).toBeGreaterThan(0), TIMEOUT),
    send: (number: number) => {
      for (const socket of subscribed) socket.send(head(number));
    },
  };
}

test('when a socket reports nothing for the idle time-out, the next endpoint is tried', async () => {
  const [silent, good] = [await startNode(), await startNode()];
  const seen: number[] = [];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watch = watchHeads(log, [silent.url, good.url], (number) => void seen.push(number));
  closing.push(watch.close);
  await silent.subscribed();
  silent.send(1);
  await vi.waitFor(() => expect(seen).toEqual([1]), TIMEOUT);
  // The idle time-out is 30 s; the next attempt follows a second later.
  vi.advanceTimersByTime(31_000);
  await good.subscribed();
  good.send(2);
  await vi.waitFor(() => expect(seen).toEqual([1, 2]), TIMEOUT);
  expect(silent.connections()).toBe(1);
});

test('each listener is called for each head until it stops, and all share one socket', async () => {
  const node = await startNode();
  const heads = createHeads([node.url], log);
  closing.push(heads.close);
  const [first, second] = [vi.fn(), vi.fn()];
  const stopFirst = heads.listen(first);
  heads.listen(second);
  await node.subscribed();
  node.send(1);
  await vi.waitFor(() => expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 1]), TIMEOUT);
  stopFirst();
  node.send(2);
  await vi.waitFor(() => expect(second).toHaveBeenCalledTimes(2), TIMEOUT);
  expect(first).toHaveBeenCalledTimes(1);
  heads.listen(first);
  node.send(3);
  await vi.waitFor(() => expect(first).toHaveBeenCalledTimes(2), TIMEOUT);
  expect(node.connections()).toBe(1);
});

test('no socket is opened before the first listener, nor without an endpoint', async () => {
  const node = await startNode();
  createHeads([node.url], log).close();
  const none = createHeads([], log);
  none.listen(() => expect.unreachable())();
  none.close();
  await new Promise((next) => setTimeout(next, 50));
  expect(node.connections()).toBe(0);
});
