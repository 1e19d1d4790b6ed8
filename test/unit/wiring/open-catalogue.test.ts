import { describe, expect, test } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { openCatalogue } from '../../../src/wiring/catalogue.ts';
import { dearest, priceAbove, priceOf, usdcRoutes } from '../../support/prices.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const MINIMUM = { NETWORK: 'arc', SELLER_ADDRESS: `0x${'5e'.repeat(20)}`, RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}` };

/** Why the service does not start with these keys beside the least; empty when it does. */
function problemsWith(env: Record<string, string>): readonly string[] {
  try {
    openCatalogue(loadConfig({ ...MINIMUM, ...env }));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const [CHEAP] = usdcRoutes();
const LOWEST = priceOf(String(CHEAP?.path));
/** The lowest price but one. */
const ABOVE = priceAbove(String(CHEAP?.path));
const ALL = usdcRoutes()
  .map(({ path }) => path.slice(1))
  .sort();
/** The routes that cost least. */
const CHEAPEST = usdcRoutes()
  .filter(({ price }) => price.units === LOWEST.units)
  .map(({ path }) => path.slice(1))
  .sort();

const KEY = `0x${'cd'.repeat(32)}`;
const CHANNELS = { CHANNELS: 'on', CHANNELS_AUTHORIZER_KEY: `0x${'ef'.repeat(32)}` };

test('the start refuses faults of PRICES and ROUTES_OFF as it refuses every fault of the environment: all at once', () => {
  expect(problemsWith({})).toEqual([]);
  expect(problemsWith({ PRICES: 'chain/wallet=0.004, web/check=0', ROUTES_OFF: 'selftest/fail,wiki/search' })).toEqual([
    expect.stringMatching(/^PRICES: "web\/check=0": /),
    expect.stringMatching(/^ROUTES_OFF: "selftest\/fail": /),
  ]);
});

describe('a route that no rail sells for USDC', () => {
  const named = (problems: readonly string[]) => {
    expect(problems).toHaveLength(1);
    return [...String(problems[0]).matchAll(/([a-z]+\/[a-z]+) \(/g)].map(([, route]) => route);
  };

  test('stops the start and is named: with EXACT=off all of them, below EXACT_FROM_USD the cheaper ones', () => {
    expect(named(problemsWith({ EXACT: 'off' })).sort()).toEqual(ALL);
    expect(problemsWith({ EXACT: 'off' })[0]).toMatch(/^EXACT=off leaves routes/);
    expect(named(problemsWith({ EXACT_FROM_USD: ABOVE.usd })).sort()).toEqual(CHEAPEST);
    expect(problemsWith({ EXACT_FROM_USD: LOWEST.usd })).toEqual([]);
  });

  test('does not when it is off, or dear enough by its new price', () => {
    const [first = '', ...others] = CHEAPEST;
    const from = { EXACT_FROM_USD: ABOVE.usd };
    const dearEnough = others.map((route) => `${route}=${ABOVE.usd}`);
    expect(problemsWith({ ...from, ROUTES_OFF: first, PRICES: dearEnough.join(',') })).toEqual([]);
    const PRICES = [...dearEnough, `web/check=${LOWEST.usd}`].join(',');
    expect(named(problemsWith({ ...from, PRICES })).sort()).toEqual([first, 'web/check'].sort());
  });

  test('does not when channels or the Gateway sell it; a Lightning node sells nothing for USDC', () => {
    expect(problemsWith({ EXACT: 'off', ...CHANNELS })).toEqual([]);
    expect(problemsWith({ EXACT: 'off', GATEWAY: 'on' })).toEqual([]);
    const node = { LIGHTNING_RECEIVER: 'phoenixd', LIGHTNING_NODE_URL: 'http://127.0.0.1:1', PHOENIXD_PASSWORD: 'p' };
    expect(named(problemsWith({ EXACT: 'off', ...node })).sort()).toEqual(ALL);
  });
});

describe('the self-test', () => {
  const selfTest = { SELFTEST_PRIVATE_KEY: KEY };

  test('starts where both of its routes are sold plainly', () => {
    expect(problemsWith(selfTest)).toEqual([]);
    expect(problemsWith({ ...selfTest, SELFTEST_PATH: '/v1/paid/arc/wallet?address=0x1' })).toEqual([]);
    expect(problemsWith({ ...selfTest, ...CHANNELS, EXACT_FROM_USD: LOWEST.usd })).toEqual([]);
  });

  test('is refused where the plain rail does not sell the route that it buys, or the one that fails', () => {
    const channels = { ...selfTest, ...CHANNELS };
    const bought = { ...channels, PRICES: `selftest/fail=${dearest().usd}` };
    expect(problemsWith({ ...bought, EXACT_FROM_USD: priceAbove('/rpc/health').usd })).toEqual([
      expect.stringContaining(`usdc-exact, which does not sell rpc/health at ${priceOf('/rpc/health').usd}`),
    ]);
    const [fails, from] = [priceOf('/selftest/fail'), priceAbove('/selftest/fail')];
    const plain = `web/check=${from.usd}`;
    const checks = { ...channels, EXACT_FROM_USD: from.usd, SELFTEST_PATH: '/v1/paid/web/check?url=https://a.example' };
    expect(problemsWith({ ...checks, PRICES: plain })).toEqual([
      expect.stringContaining(`does not sell selftest/fail at ${fails.usd}`),
    ]);
    expect(problemsWith({ ...checks, PRICES: `${plain},selftest/fail=${from.usd}` })).toEqual([]);
    expect(problemsWith({ ...channels, EXACT: 'off' })).toHaveLength(2);
    expect(problemsWith({ ...CHANNELS, EXACT: 'off' })).toEqual([]);
  });

  test('is refused where its route is not sold', () => {
    const off = [expect.stringMatching(/^SELFTEST_PATH: \/v1\/paid\/rpc\/health is not sold/)];
    expect(problemsWith({ ...selfTest, ROUTES_OFF: 'rpc/health' })).toEqual(off);
    expect(problemsWith({ ...selfTest, SELFTEST_PATH: '/v1/paid/nothing' })).toHaveLength(1);
  });
});

test('EXACT and EXACT_FROM_USD have defaults that change nothing, and refuse what they cannot read', () => {
  const { exactFrom } = loadConfig(MINIMUM).rails;
  expect(exactFrom).toBe(0n);
  expect(loadConfig({ ...MINIMUM, EXACT_FROM_USD: '0.0025' }).rails.exactFrom).toBe(2500n);
  expect(loadConfig({ ...MINIMUM, EXACT: 'off', EXACT_FROM_USD: '0.0025' }).rails.exactFrom).toBeNull();
  for (const bad of [{ EXACT: 'no' }, { EXACT_FROM_USD: '-1' }, { EXACT_FROM_USD: '0.0000001' }])
    expect(configProblems({ ...MINIMUM, ...bad })).toEqual([expect.stringMatching(`^${Object.keys(bad)[0]}: `)]);
});
