import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createStop } from '../../src/http/lifecycle.ts';
import { createLogger } from '../../src/lib/common.ts';
import { captureLog, createTestApp, listen } from './harness.ts';

/** An application with one request in flight on a keep-alive connection, and the function that stops it. */
async function busy(graceMs = 10_000) {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begun = () => {};
  const running = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const events: string[] = [];
  const t = await createTestApp({
    extra: (app) => {
      app.get('/t/slow', async () => {
        begun();
        await held;
        events.push('answered');
        return { late: true };
      });
    },
  });
  const port = await listen(t.app);
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.write('GET /t/slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await running;
  const stop = createStop(
    createLogger('info', captureLog().destination),
    t.app,
    async () => void events.push('deps closed'),
    (code) => void events.push(`exit ${code}`),
    graceMs,
  );
  /** Everything that was received before the server closed the connection. */
  const received = async () => {
    if (!socket.closed) await once(socket, 'close');
    return text;
  };
  return { t, port, socket, events, stop, release: () => release(), received };
}

async function refused(port: number): Promise<boolean> {
  const socket: Socket = connect(port, '127.0.0.1');
  const outcome = await Promise.race([once(socket, 'connect'), once(socket, 'error').catch(() => [])]).then(
    () => false,
    () => true,
  );
  socket.destroy();
  return outcome;
}

describe('a stop', () => {
  it('completes the answer in flight, takes no new connection, reports not ready, then closes the parts', async () => {
    const b = await busy();
    const stopped = b.stop('SIGTERM');
    await expect.poll(() => refused(b.port)).toBe(true);
    expect(b.events).toEqual([]);
    // The remaining connection still asks. Its answers come in order, after the slow one.
    const asked = once(b.t.app.server, 'request');
    b.socket.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
    await asked;
    b.release();
    await stopped;
    expect(b.events).toEqual(['answered', 'deps closed', 'exit 0']);
    expect(await b.received()).toMatch(/200 OK.*"late":true.*503 Service Unavailable.*"not_ready"/s);
  });

  it('does not wait for the keep-alive time of a connection that has its answer', async () => {
    const b = await busy();
    const stopped = b.stop('SIGINT');
    // The server must be closed first. Node itself closes connections that are idle at that moment.
    await expect.poll(() => refused(b.port)).toBe(true);
    b.release();
    await stopped;
    // The keep-alive time is longer than the grace period, after which it would be 1.
    expect(b.events).toEqual(['answered', 'deps closed', 'exit 0']);
    expect(await b.received()).toContain('"late":true');
  });

  it('exits with 1 when an answer takes longer than the grace period', async () => {
    const b = await busy(100);
    void b.stop('SIGTERM');
    await expect.poll(() => b.events).toEqual(['exit 1']);
    b.release();
    b.socket.destroy();
  });

  it('exits at once at the second signal', async () => {
    const b = await busy();
    void b.stop('SIGINT');
    void b.stop('SIGINT');
    expect(b.events).toEqual(['exit 1']);
    b.release();
    b.socket.destroy();
  });

  it('exits with 1 when a part does not close', async () => {
    const t = await createTestApp();
    const codes: number[] = [];
    const { lines, destination } = captureLog();
    const closeDeps = () => Promise.reject(new Error('the store is gone'));
    await createStop(createLogger('info', destination), t.app, closeDeps, (code) => void codes.push(code))('SIGTERM');
    expect(codes).toEqual([1]);
    expect(JSON.stringify(lines)).toContain('the store is gone');
  });
});
