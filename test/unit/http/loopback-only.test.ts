import dns, { lookup as lookupCallback } from 'node:dns';
import { lookup, Resolver, resolve4 } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';

// Addresses of RFC 5737 and names of RFC 2606: were the guard gone, nothing real would be asked.
const OUT = /past loopback/;

describe('tests reach nothing past loopback', () => {
  it('by connecting, in any form', () => {
    expect(() => connect(80, '192.0.2.1')).toThrow(OUT);
    expect(() => connect({ port: 80, host: 'outside.example' })).toThrow(OUT);
    expect(() => new Socket().connect(80, '192.0.2.1')).toThrow(OUT);
    expect(() => connectTls(443, '192.0.2.1')).toThrow(OUT);
    expect(() => connect({ port: 80, host: '2001:db8::1' })).toThrow(OUT);
    expect(() => connect({ port: 80, host: '127.0.0.1.outside.example' })).toThrow(OUT);
  });

  it('by fetching', async () => {
    const failure = await fetch('http://192.0.2.1/').catch((error) => error);
    expect(String(failure.cause ?? failure)).toMatch(OUT);
  });

  it('by asking for names', async () => {
    expect(() => lookupCallback('outside.example', () => {})).toThrow(OUT);
    expect(() => lookup('outside.example')).toThrow(OUT);
    expect(() => resolve4('outside.example')).toThrow(OUT);
    expect(() => dns.resolveMx('outside.example', () => {})).toThrow(OUT);
    expect(() => new Resolver().resolveTxt('outside.example')).toThrow(OUT);
  });

  it('but this machine they reach', async () => {
    const server = createServer((_request, response) => response.end('here')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('here');
    expect(await (await fetch(`http://localhost:${port}/`)).text()).toBe('here');
    expect((await lookup('localhost')).address).toMatch(/^(127\.|::1)/);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    server.close();
  });
});
