import { describe, expect, test } from 'vitest';
import { readOrder, UsageError } from '../../../cli/pay-options.ts';

const URL_A = 'https://seller.example/a';
const order = (words: string[], values: Record<string, string> = {}, env: Record<string, string> = {}) =>
  readOrder({ positionals: words, values: { ...BARE, ...values } }, env);
const BARE = { 'dry-run': false, channel: false, refund: false, gateway: false, json: false, help: false };

describe('the ceiling in USDC', () => {
  test.each<[string, string[], Record<string, string>, Record<string, string>, bigint]>([
    ['is 0.01 by default', [URL_A], {}, {}, 10_000n],
    ['is --max-usdc', [URL_A], { 'max-usdc': '0.002' }, {}, 2000n],
    ['is --maxUsdc', [URL_A], { maxUsdc: '0.002' }, {}, 2000n],
    ['is maxUsdc as a word', [URL_A, 'maxUsdc=0.002'], {}, {}, 2000n],
    ['is maxUsdc as a word before the URL', ['maxUsdc=0.002', URL_A], {}, {}, 2000n],
    ['is MAX_USDC of the environment', [URL_A], {}, { MAX_USDC: '0.002' }, 2000n],
    ['is the default when MAX_USDC is empty', [URL_A], {}, { MAX_USDC: '' }, 10_000n],
    ['is the command line’s where both name one', [URL_A], { 'max-usdc': '0.001' }, { MAX_USDC: '5' }, 1000n],
    ['is one that is named twice', [URL_A, 'maxUsdc=0.002'], { 'max-usdc': '0.002' }, {}, 2000n],
  ])('%s', (_how, words, values, env, units) => {
    expect(order(words, values, env).ceilingUnits).toBe(units);
  });

  test.each<[string, string[], Record<string, string>, Record<string, string>, string]>([
    ['two ceilings', [URL_A], { 'max-usdc': '1', maxUsdc: '2' }, {}, '--max-usdc and --maxUsdc are two ceilings'],
    [
      'a flag and another word',
      [URL_A, 'maxUsdc=2'],
      { 'max-usdc': '1' },
      {},
      '--max-usdc and maxUsdc are two ceilings',
    ],
    ['a word that is no number', [URL_A, 'maxUsdc='], {}, {}, 'maxUsdc is a decimal number'],
    ['a variable that is no number', [URL_A], {}, { MAX_USDC: '1e3' }, 'MAX_USDC is a decimal number'],
    ['part of a sat', [URL_A], {}, { MAX_SATS: '1.5' }, 'MAX_SATS is a whole number'],
    ['no URL', ['maxUsdc=2'], {}, {}, 'one URL is needed'],
    ['a protocol that is none', [URL_A], { protocol: 'http' }, {}, '--protocol is x402, l402, mpp'],
    ['a password in the URL', ['http://user:sesame@a.example/x'], {}, {}, 'a user name or a password is not taken'],
    ['a discovery service that is no URL', [URL_A], { discovery: 'here' }, {}, 'not a URL: here'],
    [
      'a channel over another protocol',
      [URL_A],
      { channel: true as never, protocol: 'mpp' },
      {},
      '--channel pays over x402',
    ],
  ])('refuses %s', (_what, words, values, env, reason) => {
    expect(() => order(words, values, env)).toThrow(UsageError);
    expect(() => order(words, values, env)).toThrow(reason);
  });
});

test('the ceiling in sats has the same spellings', () => {
  const read = (...[words, values, env]: Parameters<typeof order>) => order(words, values, env).ceilingMsat;
  expect(read([URL_A])).toBe(100_000n);
  expect([read([URL_A], { 'max-sats': '7' }), read([URL_A], { maxSats: '7' }), read([URL_A, 'maxSats=7'])]).toEqual([
    7000n,
    7000n,
    7000n,
  ]);
  expect(read([URL_A], {}, { MAX_SATS: '7' })).toBe(7000n);
});

test('the discovery service comes from the command line, else from the environment', () => {
  const env = { DISCOVERY_URL: 'https://env.example' };
  expect(order([URL_A]).discovery).toBeNull();
  expect(order([URL_A], {}, env).discovery?.host).toBe('env.example');
  expect(order([URL_A], { discovery: 'https://flag.example' }, env).discovery?.host).toBe('flag.example');
});
