import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeSignal } from '../../../src/payment/gate.ts';

let server: Server;
let client: Socket;
let raw: ServerResponse;
let signal: AbortSignal;
beforeEach(async () => {
  const arrived = Promise.withResolvers<ServerResponse>();
  server = createServer((_request, response) => arrived.resolve(response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  client.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
  raw = await arrived.promise;
  signal = closeSignal({ raw });
});
afterEach(() => {
  client.destroy();
  server.closeAllConnections();
  server.close();
});

test('a client that leaves before its answer is out ends what works for it, with 499 as the reason', async () => {
  expect(signal.aborted).toBe(false);
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
  client.destroy();
  await aborted;
  expect(signal.reason).toMatchObject({ status: 499, code: 'client_gone' });
});

test('a client that leaves with its answer ends nothing', async () => {
  const closed = new Promise((resolve) => raw.once('close', resolve));
  raw.end('answer');
  client.resume();
  await closed;
  expect(signal.aborted).toBe(false);
});
