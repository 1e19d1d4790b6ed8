import { expect, test } from 'vitest';
import { isForwarded } from '../../../src/lib/limits/count.ts';

test.each([
  { forwarded: 'for=192.0.2.1' },
  { via: '1.1 proxy' },
  { 'x-real-ip': '192.0.2.1' },
  { 'x-forwarded-for': '' },
  { 'x-forwarded-host': 'example.com' },
  { 'x-forwarded-proto': 'https' },
  { 'x-forwarded-anything': '1' },
  { 'cf-connecting-ip': '192.0.2.1' },
  { 'true-client-ip': '192.0.2.1' },
  { 'fly-client-ip': '192.0.2.1' },
  { 'x-client-ip': '192.0.2.1' },
  { 'x-envoy-external-address': '192.0.2.1' },
  { 'cdn-loop': 'cloudflare' },
])('a request with %o came through a proxy', (headers) => {
  expect(isForwarded({ host: 'example.com', accept: '*/*', ...headers })).toBe(true);
});

test.each([
  {},
  { host: 'example.com', 'user-agent': 'agent/1', accept: '*/*', 'payment-signature': 'e30=' },
  { 'x-forwarded': '1', 'x-forward-for': '1', 'x-real': '1', 'x-via': '1', viaduct: '1', 'not-x-forwarded-for': '1' },
])('a request with %o came straight', (headers) => {
  expect(isForwarded(headers)).toBe(false);
});
