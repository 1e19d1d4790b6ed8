import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { ENV } from '../../http/harness.ts';

const ARC = { NETWORK: 'arc', SELLER_ADDRESS: ENV.SELLER_ADDRESS, RELAYER_PRIVATE_KEY: ENV.RELAYER_PRIVATE_KEY };
const urlOf = (env: Record<string, string>) => loadConfig(env).discovery.catalogueUrl;

test('a catalogue is read by default only on the networks that it lists entries of', () => {
  expect(urlOf(ARC)).toBe('https://api.circle.com/v2/x402/discovery/resources');
  expect(urlOf({ ...ARC, NETWORK: 'arc-testnet' })).toBe(urlOf(ARC));
  expect(urlOf(ENV)).toBeNull();
});

test('another catalogue can be read on any network, with its own query, and reading can be turned off', () => {
  const url = 'http://127.0.0.1:8080/list?type=http';
  expect(urlOf({ ...ENV, UPSTREAM_CATALOGUE_URL: url })).toBe(url);
  expect(urlOf({ ...ARC, UPSTREAM_CATALOGUE_URL: 'off' })).toBeNull();
});

test.each(['on', 'ftp://a.example/', 'api.circle.com/list'])('%s is refused', (url) => {
  expect(() => loadConfig({ ...ARC, UPSTREAM_CATALOGUE_URL: url })).toThrow(ConfigError);
});
