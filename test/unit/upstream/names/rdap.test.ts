import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { SHIPPED_SERVERS, UNLISTED_SERVERS } from '../../../../src/upstream/domains/rdap.ts';
import { json, type NamesWorld, NOW, serveFixtures, startNames } from '../../../support/upstream/names.ts';

let world: NamesWorld;
beforeEach(async () => {
  world = await startNames();
  serveFixtures(world);
});
afterEach(() => world.stop());

const domain = (name: string) => world.sources.rdap.domain(name);
const bootstrap = (services: unknown) => world.answers.set('/iana/dns.json', json({ publication: 'x', services }));
const bootstrapReads = () => world.requests.filter((path) => path === '/iana/dns.json').length;
const HOUR = 3_600_000;

test('the registry that IANA names is asked', async () => {
  const answer = await domain('example.com');
  expect(answer).toMatchObject({
    registry: new URL(world.origin).host,
    url: `${world.origin}/com/v1/domain/example.com`,
    vouched: true,
    retrievedAtMs: NOW,
    registration: { registrar: { name: 'Example Registrar, Inc.' } },
  });
  expect(world.headers.at(-1)?.accept).toMatch(/^application\/rdap\+json/);
});

test('a registry without a record is an answer; one that fails is not', async () => {
  expect((await domain('nobody-has-this.com'))?.registration).toBeNull();
  world.answers.set('/com/v1/domain/limited.com', json({}, 'application/rdap+json', 429));
  await expect(domain('limited.com')).rejects.toBeInstanceOf(UpstreamFailed);
  world.answers.set('/com/v1/domain/other.com', json({ objectClassName: 'domain', ldhName: 'else.com' }));
  await expect(domain('other.com')).rejects.toThrow('another name');
});

test('an answer is kept for ten minutes', async () => {
  await domain('example.com');
  world.time.nowMs += 9 * 60_000;
  await domain('example.com');
  expect(world.requests.filter((path) => path.includes('/domain/'))).toHaveLength(1);
  world.time.nowMs += 2 * 60_000;
  expect((await domain('example.com'))?.retrievedAtMs).toBe(world.time.nowMs);
});

test('a redirect of the registry is followed', async () => {
  world.answers.set('/com/v1/domain/example.com', {
    status: 302,
    body: '',
    headers: { location: '/com/v2/domain/example.com' },
  });
  world.answers.set('/com/v2/domain/example.com', json({ objectClassName: 'domain', ldhName: 'example.com' }));
  expect((await domain('example.com'))?.registration).not.toBeNull();
});

describe('the bootstrap', () => {
  test('is read once a day', async () => {
    await domain('example.com');
    world.time.nowMs += 23 * HOUR;
    await domain('example.com');
    expect(bootstrapReads()).toBe(1);
    world.time.nowMs += 2 * HOUR;
    await domain('example.com');
    expect(bootstrapReads()).toBe(2);
  });

  test('names no server: the top-level domain has none', async () => {
    expect(await domain('example.nothing')).toBeNull();
  });

  test('https is preferred, a missing slash added, what is no URL left out', async () => {
    bootstrap([
      [['COM', 'net'], [`${world.origin}/com/v1`]],
      [['bad'], ['ftp://example.org/', 'http://example.org/%%', 'nonsense']],
    ]);
    expect((await domain('example.com'))?.url).toBe(`${world.origin}/com/v1/domain/example.com`);
    expect(await domain('example.bad')).toBeNull();
  });

  test('the longest match wins', async () => {
    bootstrap([
      [['com'], [`${world.origin}/nobody/`]],
      [['special.com'], [`${world.origin}/com/v1/`]],
    ]);
    expect((await domain('a.special.com'))?.url).toContain('/com/v1/');
  });

  test('the last good copy outlives a failure, which is not repeated with each call', async () => {
    await domain('example.com');
    world.time.nowMs += 25 * HOUR;
    world.answers.set('/iana/dns.json', { type: 'text/html', body: '<html></html>' });
    expect((await domain('example.com'))?.registration).not.toBeNull();
    expect((await domain('example.com'))?.registration).not.toBeNull();
    expect(bootstrapReads()).toBe(2);
    world.time.nowMs += 11 * 60_000;
    await domain('example.com');
    expect(bootstrapReads()).toBe(3);
  });

  test('never read, a name that the shipped copy does not know is a failure and not "no RDAP"', async () => {
    world.answers.delete('/iana/dns.json');
    await expect(domain('example.nothing')).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('the shipped lists', () => {
  test('are base URLs by top-level domain, none on both', () => {
    expect(SHIPPED_SERVERS.get('com')).toBe('https://rdap.verisign.com/com/v1/');
    expect(SHIPPED_SERVERS.size).toBeGreaterThan(100);
    for (const [tld, url] of [...SHIPPED_SERVERS, ...UNLISTED_SERVERS]) {
      expect(tld).toMatch(/^[a-z0-9-]+$/);
      expect(new URL(url).href).toBe(url);
      expect(url.endsWith('/')).toBe(true);
    }
    expect([...UNLISTED_SERVERS.keys()].filter((tld) => SHIPPED_SERVERS.has(tld))).toEqual([]);
  });
});
