import { describe, expect, test } from 'vitest';
import { domainsWhois } from '../../../src/endpoints/domains.ts';
import { BadParameter, NotFound, UpstreamFailed } from '../../../src/errors.ts';
import { UNLISTED_SERVERS } from '../../../src/upstream/domains/rdap.ts';
import { dnsAnswers, json, NOW } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

const world = useNames();
const whois = (domain: string) => ask(world(), '/domains/whois', { domain });
const noSuchName = () => {
  world().answers.set('/cloudflare', dnsAnswers([], { Status: 3 }));
};
const UNKNOWN = {
  registrar: null,
  createdAt: null,
  updatedAt: null,
  expiresAt: null,
  status: null,
  nameServers: null,
  dnssecSigned: null,
};

test('a registered domain', async () => {
  expect(await whois('example.com')).toEqual({
    domain: 'example.com',
    asked: 'example.com',
    registered: true,
    looksAvailable: false,
    registrar: { name: 'Example Registrar, Inc.', ianaId: '9999' },
    createdAt: 981173106,
    updatedAt: 1717200000,
    expiresAt: 1927857906,
    status: ['client transfer prohibited', 'active'],
    nameServers: ['ns1.example.net', 'ns2.example.net'],
    dnssecSigned: true,
    source: {
      name: `RDAP of ${new URL(world().origin).host}`,
      url: `${world().origin}/com/v1/domain/example.com`,
      retrievedAt: NOW / 1000,
      licence: 'Terms of use: https://registry.example/terms',
    },
  });
  expect(world().requests.some((path) => path.startsWith('/cloudflare'))).toBe(false);
});

test('a name below it is reduced to the domain, and the answer says so', async () => {
  expect(await whois('a.WWW.example.com.')).toMatchObject({ domain: 'example.com', asked: 'a.www.example.com' });
});

test('an internationalised domain is sent in ASCII', async () => {
  noSuchName();
  expect(await whois('münchen.com')).toMatchObject({ domain: 'xn--mnchen-3ya.com' });
  expect(world().requests).toContain('/com/v1/domain/xn--mnchen-3ya.com');
});

describe('without a record', () => {
  test('and without name servers it looks available', async () => {
    noSuchName();
    expect(await whois('free.com')).toEqual({
      domain: 'free.com',
      asked: 'free.com',
      registered: false,
      looksAvailable: true,
      ...UNKNOWN,
      source: expect.objectContaining({ url: `${world().origin}/com/v1/domain/free.com` }),
    });
    expect(world().requests).toContain('/cloudflare?name=free.com&type=NS');
  });

  test('a zone that answers for every name has no name servers for it either, so it looks available', async () => {
    world().answers.set('/cloudflare', dnsAnswers([]));
    expect(await whois('free.com')).toMatchObject({ registered: false, looksAvailable: true });
  });

  test('but with name servers it is registered', async () => {
    expect(await whois('taken.com')).toMatchObject({ registered: true, looksAvailable: false, ...UNKNOWN });
  });

  test('but with an alias it is registered', async () => {
    world().answers.set('/cloudflare', dnsAnswers([{ type: 'CNAME', data: 'else.example.net.' }]));
    expect(await whois('taken.com')).toMatchObject({ registered: true, looksAvailable: false });
  });

  test('but with a broken signature it is unknown', async () => {
    world().answers.set('/cloudflare', dnsAnswers([], { Status: 2, AD: false, Comment: ['EDE(6): DNSSEC Bogus'] }));
    expect(await whois('odd.com')).toMatchObject({ registered: null, looksAvailable: false });
  });

  test('and without the DNS there is no answer', async () => {
    world().answers.delete('/cloudflare');
    world().answers.delete('/google');
    await expect(whois('free.com')).rejects.toBeInstanceOf(UpstreamFailed);
  });

  test('from a server that IANA does not list it never looks available', async () => {
    expect(UNLISTED_SERVERS.has('io')).toBe(true);
    noSuchName();
    const { dns } = world().sources;
    // Such servers are on other hosts, which a test cannot reach. The test supplies their answers.
    const run = (vouched: boolean) => {
      const answer = { registry: 'r', url: 'https://r.example/', registration: null, vouched, retrievedAtMs: NOW };
      const sources = { dns, rdap: { domain: async () => answer } };
      return domainsWhois.run({ domain: 'free.io' }, sources as never, AbortSignal.timeout(60_000));
    };
    expect(await run(false)).toMatchObject({ registered: null, looksAvailable: false });
    expect(await run(true)).toMatchObject({ registered: false, looksAvailable: true });
  });
});

describe('a top-level domain whose registry publishes no RDAP', () => {
  const refusal = (domain: string) => whois(domain).catch((error: unknown) => error);

  test('is 404, never available', async () => {
    noSuchName();
    const failure = await refusal('example.it');
    expect(failure).toBeInstanceOf(NotFound);
    expect(failure).toMatchObject({ status: 404, code: 'no_rdap_for_tld' });
    // It is on the Public Suffix List, so the DNS is not asked whether it exists.
    expect(world().requests).toEqual(['/iana/dns.json']);
  });

  test('and that does not exist is told so, also while IANA’s list cannot be read', async () => {
    noSuchName();
    for (const iana of ['there', 'away']) {
      if (iana === 'away') world().answers.delete('/iana/dns.json');
      const failure = await refusal('example.nothing');
      expect(failure).toMatchObject({ status: 404, code: 'no_such_tld', charged: false });
      expect(String(failure)).toContain('there is no top-level domain .nothing');
    }
    expect(world().requests).toContain('/cloudflare?name=nothing&type=NS');
  });

  test('and that is newer than the list exists', async () => {
    expect(await refusal('example.brandnew')).toMatchObject({ code: 'no_rdap_for_tld' });
  });

  test('is not called missing because the DNS fails', async () => {
    world().answers.delete('/cloudflare');
    world().answers.delete('/google');
    expect(await refusal('example.nothing')).toMatchObject({ code: 'no_rdap_for_tld' });
  });
});

test.each([400, 403, 429, 500, 501, 503])('a registry that answers %i is a 502', async (status) => {
  noSuchName();
  world().answers.set('/com/v1/domain/odd.com', json({ errorCode: status }, 'application/rdap+json', status));
  await expect(whois('odd.com')).rejects.toMatchObject({ status: 502 });
});

test.each([
  ['co.uk', 'domain: co.uk is a public suffix'],
  ['com', 'domain: a name with at least one dot'],
  ['127.0.0.1', 'domain: a host name, not an IP address'],
  ['a_b.com', 'domain: registrable names have no underscores'],
  ['', 'domain: a host name'],
])('%o is refused', async (domain, message) => {
  const failure = await whois(domain).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect(String(failure)).toContain(message);
  expect(world().requests).toEqual([]);
});
