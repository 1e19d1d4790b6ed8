import { expect, test } from 'vitest';
import { isAskedResource } from '../../../cli/challenges.ts';

const asked = new URL('https://api.example.com/v1/paid/chain/wallet?address=0x1&x=%2f#part');

test.each([
  ['the URL itself', 'https://api.example.com/v1/paid/chain/wallet?address=0x1&x=%2f'],
  ['the URL in another spelling of its host', 'https://API.example.com:443/v1/paid/chain/wallet?address=0x1&x=%2f'],
  ['the URL without its query', 'https://api.example.com/v1/paid/chain/wallet'],
  ['the URL as a server behind a proxy that ends TLS sees it', 'http://api.example.com/v1/paid/chain/wallet'],
])('an offer for %s is for the requested URL', (_, resource) => {
  expect(isAskedResource(asked, resource)).toBe(true);
});

test.each([
  ['another host', 'https://api.example.org/v1/paid/chain/wallet?address=0x1&x=%2f'],
  ['a host below', 'https://a.api.example.com/v1/paid/chain/wallet'],
  ['another port', 'https://api.example.com:8443/v1/paid/chain/wallet'],
  ['another path', 'https://api.example.com/v1/paid/chain/token?address=0x1&x=%2f'],
  ['a path above', 'https://api.example.com/v1/paid/chain'],
  ['another query', 'https://api.example.com/v1/paid/chain/wallet?address=0x2&x=%2f'],
  ['another spelling of the query', 'https://api.example.com/v1/paid/chain/wallet?address=0x1&x=%2F'],
  ['a part of the query', 'https://api.example.com/v1/paid/chain/wallet?address=0x1'],
  ['another scheme than the web’s', 'ftp://api.example.com/v1/paid/chain/wallet'],
  ['a tool', 'mcp://tool/paid_chain_wallet'],
  ['a path alone', '/v1/paid/chain/wallet'],
  ['nothing', ''],
])('an offer for %s is for another resource', (_, resource) => {
  expect(isAskedResource(asked, resource)).toBe(false);
});

test('an offer with a query is not for a URL without one', () => {
  expect(isAskedResource(new URL('http://127.0.0.1:4021/a'), 'http://127.0.0.1:4021/a?b=1')).toBe(false);
  expect(isAskedResource(new URL('http://127.0.0.1:4021/a'), 'http://127.0.0.1:4021/a')).toBe(true);
});
