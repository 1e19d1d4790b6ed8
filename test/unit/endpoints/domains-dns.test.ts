import { describe, expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { dnsAnswers, NOW } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

const world = useNames();
const dns = (query: Record<string, string>) => ask(world(), '/domains/dns', query);

test('the six default types, mail servers in their order', async () => {
  expect(await dns({ name: 'Example.COM' })).toEqual({
    name: 'example.com',
    status: 'NOERROR',
    exists: true,
    dnssecValidated: true,
    records: {
      A: [{ address: '192.0.2.1', ttl: 300 }],
      AAAA: [],
      CNAME: [],
      MX: [
        { preference: 10, exchange: 'a.example.net', ttl: 300 },
        { preference: 20, exchange: 'b.example.net', ttl: 300 },
      ],
      TXT: [],
      NS: [{ nameServer: 'ns1.example.net', ttl: 300 }],
    },
    aliases: [],
    source: { name: 'Cloudflare 1.1.1.1', url: world().urls.dns, retrievedAt: NOW / 1000 },
  });
  expect(world().requests).toHaveLength(6);
});

test('the requested types, each once, in any letter case', async () => {
  const reply = await dns({ name: 'example.com', type: 'soa, caa,SOA' });
  expect(reply.records).toEqual({ SOA: [], CAA: [] });
  expect(world().requests).toHaveLength(2);
});

test('every type has a schema that its records fit', async () => {
  const rows = [
    { type: 'AAAA', data: '2001:db8::1' },
    { type: 'TXT', data: '"a"' },
    { type: 'SOA', data: 'ns.example. hm.example. 1 2 3 4 5' },
    { type: 'CAA', data: '0 issue "example.org"' },
    { type: 'A', data: '192.0.2.9', name: 'end.example.net' },
    { type: 'CNAME', data: 'end.example.net.' },
  ] as const;
  world().answers.set('/cloudflare', dnsAnswers(rows));
  const reply = await dns({ name: 'www.example.com', type: 'A,AAAA,CNAME,MX,TXT,NS,SOA,CAA' });
  expect(reply).toMatchObject({
    records: {
      A: [{ address: '192.0.2.9' }],
      CNAME: [{ target: 'end.example.net' }],
      MX: [],
      SOA: [{ primaryNameServer: 'ns.example', minimumSeconds: 5 }],
      CAA: [{ tag: 'issue' }],
    },
    aliases: [{ name: 'www.example.com', target: 'end.example.net', ttl: 300 }],
  });
});

test('an internationalised name is sent in ASCII, and a service label is allowed', async () => {
  expect((await dns({ name: 'münchen.de', type: 'A' })).name).toBe('xn--mnchen-3ya.de');
  expect((await dns({ name: '_dmarc.example.com', type: 'TXT' })).name).toBe('_dmarc.example.com');
  expect(world().requests[0]).toBe('/cloudflare?name=xn--mnchen-3ya.de&type=A');
});

test('a name that does not exist is an answer', async () => {
  world().answers.set('/cloudflare', dnsAnswers([], { Status: 3 }));
  expect(await dns({ name: 'nobody.example.com', type: 'A' })).toMatchObject({ status: 'NXDOMAIN', exists: false });
});

describe('refused before any source is asked', () => {
  test.each([
    [{}, 'name: required'],
    [{ name: '' }, 'name: a host name'],
    [{ name: 'com' }, 'name: a name with at least one dot'],
    [{ name: '192.0.2.1' }, 'name: a host name, not an IP address'],
    [{ name: 'https://example.com' }, 'name: a host name'],
    [{ name: 'printer.local' }, 'name: a special-use name'],
    [{ name: 'a'.repeat(2000) }, 'name: longer than'],
    [{ name: 'example.com', type: '' }, 'type: a comma-separated list of A, AAAA'],
    [{ name: 'example.com', type: 'ANY' }, 'type: a comma-separated list'],
    [{ name: 'example.com', type: 'A,,MX' }, 'type: a comma-separated list'],
    [{ name: 'example.com', type: '1' }, 'type: a comma-separated list'],
    [{ name: 'example.com', types: 'A' }, 'types: no such parameter'],
  ])('%o', async (query, message) => {
    const failure = await dns(query as Record<string, string>).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BadParameter);
    expect(String(failure)).toContain(message);
    expect(world().requests).toEqual([]);
  });
});
