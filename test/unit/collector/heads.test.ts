import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { watchHeads } from '../../../src/chain/rpc/heads.ts';

const open: { close(): unknown }[] = [];
const sockets: Duplex[] = [];
afterEach(() => {
  for (const part of open.splice(0)) part.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});
const log = { info: () => undefined, warn: () => undefined };

/** A minimal websocket server: the handshake, and short text frames. */
async function startWebsocket(onOpen: (send: (text: string) => void, socket: Duplex) => void): Promise<string> {
  const server: Server = createServer();
  server.on('upgrade', (request, socket) => {
    sockets.push(socket);
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    const send = (text: string) =>
      socket.write(
        Buffer.concat([Buffer.from([0x81, 126, text.length >> 8, text.length & 255]), Buffer.from(text.padEnd(126))]),
      );
    socket.once('data', () => onOpen(send, socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(server);
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const head = (number: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    method: 'eth_subscription',
    params: { subscription: '0x1', result: { number } },
  }).padEnd(200);

test('reports each new head and nothing else', async () => {
  const url = await startWebsocket((send) => {
    send(JSON.stringify({ jsonrpc: '2.0', id: 1, result: '0x1' }).padEnd(200));
    send('nonsense'.padEnd(200));
    send(head('0x10'));
    send(head('0x11'));
  });
  const seen: number[] = [];
  const both = Promise.withResolvers<void>();
  const onHead = (number: number) => {
    seen.push(number);
    if (seen.length === 2) both.resolve();
  };
  open.push(watchHeads(log, [url], onHead));
  await both.promise;
  expect(seen).toEqual([16, 17]);
});

test('connects to the next endpoint when one closes the connection', async () => {
  const deaf = await startWebsocket((_send, socket) => socket.destroy());
  const good = await startWebsocket((send) => send(head('0x12')));
  const seen = Promise.withResolvers<number>();
  open.push(watchHeads(log, [deaf, good], seen.resolve));
  expect(await seen.promise).toBe(18);
});

test('without an endpoint there is nothing to watch', () => {
  watchHeads(log, [], () => expect.unreachable()).close();
});
