import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const MINIMUM = {
  NETWORK: 'arc',
  SELLER_ADDRESS: `0x${'11'.repeat(20)}`,
  RELAYER_PRIVATE_KEY: `0x${'ab'.repeat(32)}`,
};
const KEY = `0x${'cd'.repeat(32)}`;

const problemsOf = (env: Record<string, string>) => configProblems({ ...MINIMUM, ...env });

describe('the configuration of the self-test', () => {
  test('is off without a wallet; with one it buys hourly, unless the interval is configured', () => {
    const off = { privateKey: null, intervalMs: 3_600_000, path: '/v1/paid/rpc/health' };
    expect(loadConfig(MINIMUM).selfTest).toEqual(off);
    expect(loadConfig({ ...MINIMUM, SELFTEST_PRIVATE_KEY: '' }).selfTest).toEqual(off);
    expect(loadConfig({ ...MINIMUM, SELFTEST_PRIVATE_KEY: KEY }).selfTest).toEqual({ ...off, privateKey: KEY });
    const configured = { SELFTEST_INTERVAL_SECONDS: '60', SELFTEST_PATH: '/v1/paid/fees/estimate?gas=21000' };
    const { intervalMs, path } = loadConfig({ ...MINIMUM, ...configured }).selfTest;
    expect([intervalMs, path]).toEqual([60_000, configured.SELFTEST_PATH]);
  });

  test.each([
    ['SELFTEST_PRIVATE_KEY', 'cd'.repeat(32)],
    ['SELFTEST_INTERVAL_SECONDS', '29'],
    ['SELFTEST_INTERVAL_SECONDS', '86401'],
    ['SELFTEST_PATH', '/v1/lightning/rpc/health'],
    ['SELFTEST_PATH', 'https://elsewhere.example/v1/paid/rpc/health'],
    ['SELFTEST_PATH', '/v1/paid/chain/wallet?address=0x1 2'],
  ])('refuses %s=%s by name, without repeating it', (key, value) => {
    const problems = problemsOf({ [key]: value });
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${key}: `))]);
    expect(problems.join()).not.toContain(value);
  });

  test('refuses the relayer’s wallet in any spelling, because what it pays for gas would look like charges', () => {
    const key = `0x${'AB'.repeat(32)}`;
    const problems = problemsOf({ SELFTEST_PRIVATE_KEY: key });
    expect(problems).toEqual([expect.stringMatching(/^SELFTEST_PRIVATE_KEY is the relayer’s/)]);
    expect(problems.join().toLowerCase()).not.toContain(key.toLowerCase());
  });
});
