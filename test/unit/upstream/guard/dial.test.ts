import { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { dial } from '../../../../src/upstream/guard/dial.ts';

/** In ms: the time-out of one address. */
const ATTEMPT_MS = 2500;

let asked: PromiseWithResolvers<Socket>;
beforeEach(() => {
  asked = Promise.withResolvers();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // The test says when a socket is connected.
  vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket) {
    asked.resolve(this);
    return this;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A connection that is being made. */
async function connecting(): Promise<{ dialled: ReturnType<typeof dial>; socket: Socket }> {
  const testHosts = new Map([['page.example', { address: '127.0.0.1', port: 1 }]]);
  const url = new URL('http://page.example/');
  const dialled = dial(url, { resolve: async () => [], testHosts }, new AbortController().signal);
  return { dialled, socket: await asked.promise };
}

test('an address that does not answer is given up after its time', async () => {
  const { dialled, socket } = await connecting();
  const failed = expect(dialled).rejects.toThrow('connecting timed out');
  vi.advanceTimersByTime(ATTEMPT_MS - 1);
  await new Promise(setImmediate);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  await failed;
  expect(socket.destroyed).toBe(true);
});

test('a connection of which the process learns only after its timer, as after a pause, is used', async () => {
  const { dialled, socket } = await connecting();
  vi.advanceTimersByTime(ATTEMPT_MS);
  socket.emit('connect');
  expect((await dialled).socket).toBe(socket);
  await new Promise(setImmediate);
  expect(socket.destroyed).toBe(false);
});
