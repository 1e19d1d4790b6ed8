import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { configProblems } from '../support/service/config-problems.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
const TOKEN = `0x${'AB'.repeat(20)}`;
const LOWER = TOKEN.toLowerCase();
const watchOf = (env: Record<string, string> = {}) => loadConfig({ ...MINIMUM, ...env }).watch;

const problemsOf = (env: Record<string, string>) => configProblems({ ...MINIMUM, ...env });

describe('the watch list', () => {
  test('on Arc has EURC, cirBTC and WETH on the named venues, and ignores trades below a dollar', () => {
    const { tokens, venues, ...rest } = watchOf();
    expect(tokens.map(({ symbol }) => symbol)).toEqual(['EURC', 'cirBTC', 'WETH']);
    expect(venues.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'v2 Uniswap v2',
      'v3 Uniswap v3',
      'v4 Uniswap v4',
      'slipstream Aero',
    ]);
    for (const { address } of [...tokens, ...venues]) expect(address).toMatch(/^0x[0-9a-f]{40}$/);
    expect(rest).toEqual({
      projectToken: null,
      distributor: null,
      burnAddresses: [`0x${'0'.repeat(40)}`, `0x${'0'.repeat(36)}dead`],
      dustE9: 1_000_000_000n,
      outlierPercent: 20,
    });
  });

  test('has the project’s token when one is configured, once, by its symbol', () => {
    const own = watchOf({ PROJECT_TOKEN_ADDRESS: TOKEN, PROJECT_TOKEN_SYMBOL: 'OWN' });
    expect(own.projectToken).toBe(LOWER);
    expect(own.tokens.at(-1)).toEqual({ symbol: 'OWN', address: LOWER });
    const listed = watchOf({ PROJECT_TOKEN_ADDRESS: TOKEN, WATCH_TOKENS: `LISTED:${TOKEN}` });
    expect(listed.tokens).toEqual([{ symbol: 'LISTED', address: LOWER }]);
  });

  test('follows the environment where it is set', () => {
    const watch = watchOf({
      WATCH_TOKENS: ` A.b:${TOKEN} , `,
      DEX_VENUES: `v4:${TOKEN}:My venue`,
      TRADE_DUST_USDC: '0.05',
      TRADE_OUTLIER_PERCENT: '5',
      BURN_ADDRESSES: TOKEN,
      DISTRIBUTOR_ADDRESS: TOKEN,
    });
    expect(watch.tokens).toEqual([{ symbol: 'A.b', address: LOWER }]);
    expect(watch).toMatchObject({ dustE9: 50_000_000n, outlierPercent: 5, burnAddresses: [LOWER], distributor: LOWER });
  });

  test('names the key that is wrong', () => {
    const wrong = {
      WATCH_TOKENS: 'EURC',
      DEX_VENUES: `v5:${TOKEN}:Five`,
      PROJECT_TOKEN_SYMBOL: 'a b',
      DISTRIBUTOR_ADDRESS: '0x1',
      BURN_ADDRESSES: 'dead',
      TRADE_DUST_USDC: '1.0000000001',
      TRADE_OUTLIER_PERCENT: '0',
    };
    expect(
      problemsOf(wrong)
        .map((problem) => problem.split(':')[0])
        .sort(),
    ).toEqual(Object.keys(wrong).sort());
    expect(problemsOf({ WATCH_TOKENS: `A:${TOKEN},a:${LOWER}` })).toHaveLength(1);
  });
});
