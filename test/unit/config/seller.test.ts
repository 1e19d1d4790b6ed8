import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { configProblems } from '../../support/service/config-problems.ts';
import { newKey } from '../../support/usdc/payments.ts';

const hex = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;
const [relayer, selfTest] = [newKey(), newKey()];
const MINIMUM = {
  NETWORK: 'arc',
  SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: hex(relayer.privateKey),
  SELFTEST_PRIVATE_KEY: hex(selfTest.privateKey),
};
/** An example of EIP-55 itself. */
const CHECKSUMMED = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

describe('the seller’s address', () => {
  test.each([
    ['its EIP-55 checksum', CHECKSUMMED],
    ['lower case', CHECKSUMMED.toLowerCase()],
    ['upper case', `0x${CHECKSUMMED.slice(2).toUpperCase()}`],
  ])('passes in %s', (_case, SELLER_ADDRESS) => {
    expect(loadConfig({ ...MINIMUM, SELLER_ADDRESS }).seller).toBe(SELLER_ADDRESS);
  });

  test.each([
    ['with a mistyped digit', CHECKSUMMED.replace('6053', '6054'), 'EIP-55 checksum'],
    ['with a letter in the other case', CHECKSUMMED.replace('aAeb', 'aaeb'), 'EIP-55 checksum'],
    ['zero', `0x${'0'.repeat(40)}`, 'the zero address'],
    ['of USDC on Arc', `0x36${'0'.repeat(38)}`, 'the USDC contract'],
    ['of the relayer', relayer.address, 'RELAYER_PRIVATE_KEY'],
    ['of the relayer, in upper case', `0x${relayer.address.slice(2).toUpperCase()}`, 'RELAYER_PRIVATE_KEY'],
    ['of the self-test', selfTest.address, 'SELFTEST_PRIVATE_KEY'],
  ])('is refused by name: %s', (_case, SELLER_ADDRESS, why) => {
    const problems = configProblems({ ...MINIMUM, SELLER_ADDRESS });
    expect(problems).toEqual([expect.stringMatching(/^SELLER_ADDRESS\b/)]);
    expect(problems[0]).toContain(why);
    expect(problems[0]).not.toContain(SELLER_ADDRESS);
  });

  test('is refused where it is the token of a network of its own', () => {
    const custom = { NETWORK: 'custom', CHAIN_ID: '7', RPC_URLS: 'http://127.0.0.1:1' };
    const token = `0x${'aB'.repeat(20)}`;
    const given = { ...MINIMUM, ...custom, USDC_ADDRESS: token, SELLER_ADDRESS: token.toLowerCase() };
    expect(configProblems(given)).toEqual([expect.stringContaining('the USDC contract')]);
  });

  test('is compared with no key that is none, which has its own line', () => {
    for (const key of [`0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`])
      expect(configProblems({ ...MINIMUM, RELAYER_PRIVATE_KEY: key })).toEqual([]);
    expect(configProblems({ ...MINIMUM, RELAYER_PRIVATE_KEY: '0x12' })).toEqual([
      expect.stringMatching(/^RELAYER_PRIVATE_KEY: /),
    ]);
  });
});

describe('the public origin', () => {
  const problemsOf = (PUBLIC_ORIGIN: string, more: Record<string, string> = {}) =>
    configProblems({ ...MINIMUM, ...more, PUBLIC_ORIGIN });
  const production = { NODE_ENV: 'production' };

  test.each([
    'https://api.example.com/shop',
    'https://api.example.com/?a=1',
    'https://api.example.com?a=1',
    'https://api.example.com/#top',
    'https://user:word@api.example.com',
    'https://api.example.com//',
  ])('is refused with more than a scheme, a host and a port: %s', (origin) => {
    expect(problemsOf(origin)).toEqual([expect.stringMatching(/^PUBLIC_ORIGIN: a scheme, a host and a port alone/)]);
    expect(problemsOf(origin, production)).toHaveLength(1);
  });

  test.each(['http://api.example.com', 'http://127.example.com', 'http://localhost.example.com', 'http://10.0.0.1'])(
    'is refused without TLS in production: %s',
    (origin) => {
      expect(problemsOf(origin, production)).toEqual([expect.stringMatching(/^PUBLIC_ORIGIN: https in production/)]);
      expect(problemsOf(origin)).toEqual([]);
      expect(problemsOf(origin, { ...production, PLAY_MONEY: 'on' })).toEqual([]);
    },
  );

  test.each([
    'https://api.example.com',
    'https://api.example.com:8443/',
    'http://127.0.0.1:4021',
    'http://[::1]:4021',
    'http://localhost:4021',
    'http://shop.localhost',
  ])('passes in production: %s', (origin) => {
    expect(problemsOf(origin, production)).toEqual([]);
  });
});
