import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createHeads, watchHeads } from '../../../../src/chain/rpc/heads.ts';

const PATIENCE = { timeout: 10_000, interval: 5 };
const log = { info: () => undefined, warn: () => undefined };
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A node's websocket: counts connections and subscriptions, and tells of heads when the test says so. */
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
    subscribed: () => vi.waitFor(() => expect(subscribed.length).toBeGreaterThan(0), PATIENCE),
    tell: (number: number) => {
      for (const socket of subscribed) socket.send(head(number));
    },
  };
}

test('a socket that falls silent without closing is left for the next endpoint', async () => {
  const [silent, good] = [await startNode(), await startNode()];
  const seen: number[] = [];
  const options = { urls: [silent.url, good.url], log, silenceMs: 500 };
  const watch = watchHeads({ ...options, onHead: (number) => void seen.push(number) });
  closing.push(watch.close);
  await silent.subscribed();
  silent.tell(1);
  await good.subscribed();
  good.tell(2);
  await vi.waitFor(() => expect(seen).toEqual([1, 2]), PATIENCE);
  expect(silent.connections()).toBe(1);
});

test('whoever listens is told of each head, until he stops; all share one socket', async () => {
  const node = await startNode();
  const heads = createHeads([node.url], log);
  closing.push(heads.close);
  const [first, second] = [vi.fn(), vi.fn()];
  const stopFirst = heads.listen(first);
  heads.listen(second);
  await node.subscribed();
  node.tell(1);
  await vi.waitFor(() => expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 1]), PATIENCE);
  stopFirst();
  node.tell(2);
  await vi.waitFor(() => expect(second).toHaveBeenCalledTimes(2), PATIENCE);
  expect(first).toHaveBeenCalledTimes(1);
  heads.listen(first);
  node.tell(3);
  await vi.waitFor(() => expect(first).toHaveBeenCalledTimes(2), PATIENCE);
  expect(node.connections()).toBe(1);
});

test('no socket is opened before somebody listens, nor without an endpoint', async () => {
  const node = await startNode();
  createHeads([node.url], log).close();
  const none = createHeads([], log);
  none.listen(() => expect.unreachable())();
  none.close();
  await new Promise((next) => setTimeout(next, 50));
  expect(node.connections()).toBe(0);
});
