import { describe, expect, test } from 'vitest';
import { hasOwnAddress, identityOf } from '../../../../src/lib/limits/count.ts';

const from = (ip: string, headers: Record<string, string> = {}, ips?: string[]) => ({ ip, headers, ips });

describe('a direct request', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:0:1::9', '2001:db8:0:1::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
  ])('from %s has the identity %s, each time', (ip, identity) => {
    expect([identityOf(from(ip)), identityOf(from(ip))]).toEqual([identity, identity]);
    expect(identityOf(from(ip, {}, [ip]))).toBe(identity);
  });
});

describe('a request that trusted proxies passed on', () => {
  test('is identified by the address that they report', () => {
    const headers = { 'x-forwarded-for': '192.0.2.1', via: '1.1 proxy' };
    expect(identityOf(from('192.0.2.1', headers, ['10.0.0.1', '192.0.2.1']))).toBe('192.0.2.1');
  });

  test('without a reported address has no address of its own', () => {
    expect(hasOwnAddress(from('10.0.0.1', { via: '1.1 proxy' }, ['10.0.0.1']))).toBe(false);
    expect(hasOwnAddress(from('unknown', { 'x-forwarded-for': 'unknown' }, ['10.0.0.1', 'unknown']))).toBe(false);
  });
});

describe('a request that came through a proxy that is not trusted', () => {
  test.each([
    { 'x-forwarded-for': '192.0.2.1' },
    { forwarded: 'for=192.0.2.1' },
    { 'x-real-ip': '192.0.2.1' },
    { via: '1.1 x' },
  ])('with %o has an identity that no other request has, nor itself when it is sent again', (headers) => {
    const seen = [from('192.0.2.1', headers), from('192.0.2.1', headers), from('192.0.2.1', headers, ['192.0.2.1'])];
    const identities = seen.map(identityOf);
    expect(new Set([...identities, '192.0.2.1']).size).toBe(4);
    for (const identity of identities) expect(identity).toMatch(/^[0-9a-f-]{36}$/);
  });
});

test('a request whose connection has ended has no address and gets a unique identity', () => {
  const gone = { ip: undefined as unknown as string, headers: {} };
  expect(identityOf(gone)).not.toBe(identityOf(gone));
});
