import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { countingEndpoint, createStillClock, createTestApp } from './harness.ts';

const REQUEST = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n';
const HINT = /TRUSTED_PROXIES/;

let closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.map((close) => close()));
  closing = [];
});

/** The service, and connections to it over loopback that have another peer's address, as the service sees them. */
async function open(env: Record<string, string> = {}) {
  const clock = createStillClock();
  const counting = countingEndpoint();
  const { app, lines } = await createTestApp({ env, clock, catalogue: [counting.endpoint] });
  const door = createServer({ allowHalfOpen: true });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const { port } = door.address() as AddressInfo;
  const clients: Socket[] = [];
  closing.push(async () => {
    for (const client of clients) client.destroy();
    door.close();
    await app.close();
  });

  /** Connects. `left` resolves when the service has seen the connection end. */
  async function from(address: string) {
    const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    clients.push(client);
    const [peer] = (await once(door, 'connection')) as [Socket];
    Object.defineProperty(peer, 'remoteAddress', { value: address });
    const left = new Promise((resolve) => peer.once('close', resolve));
    app.server.emit('connection', peer);
    return { client, left };
  }
  const warnings = () => lines.filter(({ level }) => level === 'warn');
  return { app, from, warnings, clock, calls: counting.calls };
}

/** The status of the answer to a request on a connection, which stays open. */
async function ask({ client }: { client: Socket }, request = REQUEST): Promise<number> {
  client.write(request);
  const [head] = (await once(client, 'data')) as [Buffer];
  return Number(/^HTTP\/1\.1 (\d+) /.exec(String(head))?.[1]);
}

const metricsOf = async (app: FastifyInstance) => (await app.inject('/metrics')).body;

describe('the connections of one client', () => {
  test('are as many as it may have; one more is refused with a problem, and no other client is', async () => {
    const { from, app, calls } = await open({ CONNECTIONS_PER_CLIENT: '2' });
    const [first, second] = [await from('192.0.2.1'), await from('192.0.2.1')];
    expect([await ask(first), await ask(second)]).toEqual([200, 200]);

    const third = await from('192.0.2.1');
    third.client.write('GET /v1/chain/count HTTP/1.1\r\nHost: x\r\n\r\n');
    const [head = '', body = ''] = (await text(third.client)).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(head).toMatch(/^connection: close$/im);
    expect(head).toMatch(/^retry-after: \d+$/im);
    expect(head).toMatch(/^content-type: application\/problem\+json/im);
    expect(head).toMatch(new RegExp(`^content-length: ${body.length}$`, 'im'));
    const id = /^x-request-id: (\S+)/im.exec(head)?.[1];
    // It was not read, so nobody knows whether it repeats a payment that was taken.
    const problem = { status: 503, code: 'too_many_connections', charged: 'unknown', requestId: id };
    expect(JSON.parse(body)).toMatchObject(problem);
    await third.left;
    expect(calls.count).toBe(0);

    expect(await ask(await from('192.0.2.2'))).toBe(200);
    expect([await ask(first), await ask(second)]).toEqual([200, 200]);
    const metrics = await metricsOf(app);
    expect(metrics).toMatch(/^http_connections 3$/m);
    expect(metrics).toMatch(/^http_connections_refused_total\{limit="client"\} 1$/m);
  });

  test('that end make room for others', async () => {
    const { from } = await open({ CONNECTIONS_PER_CLIENT: '1' });
    const first = await from('192.0.2.1');
    expect(await ask(await from('192.0.2.1'))).toBe(503);
    first.client.end();
    await first.left;
    expect(await ask(await from('192.0.2.1'))).toBe(200);
  });

  test('are counted by IPv4 address and by IPv6 /64, and a /48 may have four times as many', async () => {
    const { from } = await open({ CONNECTIONS_PER_CLIENT: '1' });
    expect(await ask(await from('::ffff:192.0.2.1'))).toBe(200);
    expect(await ask(await from('192.0.2.1'))).toBe(503);
    for (const network of ['1', '2', '3', '4']) {
      expect(await ask(await from(`2001:db8:1:${network}::1`))).toBe(200);
      expect(await ask(await from(`2001:db8:1:${network}::2`))).toBe(503);
    }
    expect(await ask(await from('2001:db8:1:5::1'))).toBe(503);
    expect(await ask(await from('2001:db8:2:5::1'))).toBe(200);
  });

  test.each(['127.0.0.1', '::1', '10.1.2.3', '::ffff:10.1.2.3', '2001:db8::7', '198.51.100.9'])(
    'are not limited for loopback and trusted proxies (%s)',
    async (address) => {
      const trusted = '10.0.0.0/8, 2001:db8::/120,198.51.100.9';
      const { from } = await open({ CONNECTIONS_PER_CLIENT: '1', TRUSTED_PROXIES: trusted });
      for (let count = 0; count < 3; count += 1) expect(await ask(await from(address))).toBe(200);
      expect(await ask(await from('198.51.100.8'))).toBe(200);
      expect(await ask(await from('198.51.100.8'))).toBe(503);
    },
  );

  test('are not limited with 0', async () => {
    const { from } = await open({ CONNECTIONS_PER_CLIENT: '0' });
    for (let count = 0; count < 300; count += 1) await from('192.0.2.1');
    expect(await ask(await from('192.0.2.1'))).toBe(200);
  });

  test('beyond the limit are logged once a minute and client, with the hint to name a proxy', async () => {
    const { from, warnings, clock } = await open({ CONNECTIONS_PER_CLIENT: '1' });
    for (const address of ['192.0.2.1', '192.0.2.2']) {
      for (let count = 0; count < 3; count += 1) await from(address);
    }
    const line = { connections: 1, msg: expect.stringMatching(HINT) };
    expect(warnings()).toMatchObject([
      { client: '192.0.2.1', ...line },
      { client: '192.0.2.2', ...line },
    ]);
    clock.now += 60_000;
    for (let count = 0; count < 2; count += 1) await from('192.0.2.1');
    expect(warnings()).toHaveLength(3);
  });
});

describe('all connections', () => {
  test('are as many as MAX_CONNECTIONS, whosever they are', async () => {
    const { from, warnings, app } = await open({ MAX_CONNECTIONS: '2' });
    const [first] = [await from('192.0.2.1'), await from('127.0.0.1')];
    for (const address of ['192.0.2.2', '127.0.0.1']) expect(await ask(await from(address))).toBe(503);
    expect(warnings()).toMatchObject([{ connections: 2, msg: expect.stringMatching(/MAX_CONNECTIONS/) }]);
    expect(await metricsOf(app)).toMatch(/^http_connections_refused_total\{limit="all"\} 2$/m);
    first.client.end();
    await first.left;
    expect(await ask(await from('192.0.2.2'))).toBe(200);
  });

  test('leave an eighth, and at most 32, to loopback and trusted proxies', async () => {
    const { from } = await open({ MAX_CONNECTIONS: '16', TRUSTED_PROXIES: '10.0.0.0/8' });
    for (let client = 1; client <= 14; client += 1) expect(await ask(await from(`192.0.2.${client}`))).toBe(200);
    expect(await ask(await from('192.0.2.15'))).toBe(503);
    for (const trusted of ['127.0.0.1', '10.1.2.3']) expect(await ask(await from(trusted))).toBe(200);
    for (const address of ['127.0.0.1', '192.0.2.16']) expect(await ask(await from(address))).toBe(503);

    const { from: many } = await open({ MAX_CONNECTIONS: '300', CONNECTIONS_PER_CLIENT: '0' });
    for (let count = 1; count < 268; count += 1) await many('192.0.2.1');
    expect(await ask(await many('192.0.2.1'))).toBe(200);
    expect(await ask(await many('192.0.2.2'))).toBe(503);
    expect(await ask(await many('::1'))).toBe(200);
  });

  test('are shared: one client has at most an eighth, and an IPv6 /48 a quarter', async () => {
    const { from, warnings } = await open({ MAX_CONNECTIONS: '24' });
    for (let count = 0; count < 3; count += 1) expect(await ask(await from('192.0.2.1'))).toBe(200);
    expect(await ask(await from('192.0.2.1'))).toBe(503);
    for (let count = 0; count < 6; count += 1) expect(await ask(await from(`2001:db8:1:${count % 3}::1`))).toBe(200);
    expect(await ask(await from('2001:db8:1:4::1'))).toBe(503);
    expect(warnings()).toMatchObject([
      { client: '192.0.2.1', connections: 3 },
      { client: '2001:db8:1::/48', connections: 6 },
    ]);
  });

  test('that are refused and never end are closed, the first ones after a second', async () => {
    const { from } = await open({ MAX_CONNECTIONS: '1' });
    await from('192.0.2.1');
    // These clients neither send nor close anything.
    const refused = [await from('192.0.2.2'), await from('192.0.2.2')];
    await Promise.all(refused.map(({ left }) => left));
  });

  test('leave 512 descriptors to files and to our own connections, unless a number is set', async () => {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    const { app } = await open();
    expect(await metricsOf(app)).toMatch(new RegExp(`^http_connections_limit ${Number(soft) - 512}$`, 'm'));
    const { app: set } = await open({ MAX_CONNECTIONS: '77' });
    expect(await metricsOf(set)).toMatch(/^http_connections_limit 77$/m);
  });
});
