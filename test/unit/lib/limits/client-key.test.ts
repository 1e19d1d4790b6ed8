import { describe, expect, it, test } from 'vitest';
import { clientKey, keysOf, siteKey } from '../../../../src/lib/limits/count.ts';

describe('clientKey', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
    ['2001:0DB8:0000:0001:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
    ['2001:db8:0:2::1', '2001:db8:0:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['unknown', 'unknown'],
    ['a:b', 'a:b'],
  ])('counts %s as %s', (ip, key) => {
    expect(clientKey(ip)).toBe(key);
  });

  it('stays short whatever a proxy passes on', () => {
    expect(clientKey('x'.repeat(9000))).toHaveLength(64);
    expect(clientKey(':'.repeat(9000))).toHaveLength(64);
  });
});

test.each([
  ['203.0.113.7', null],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8:0::/48'],
  ['unix:socket', null],
])('the site of %s is %s', (ip, site) => {
  const client = clientKey(ip);
  expect(siteKey(client)).toBe(site);
  expect(keysOf(client)).toEqual(site === null ? [client] : [client, site]);
});
