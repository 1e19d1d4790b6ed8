import { describe, expect, test } from 'vitest';
import { fx } from '../../../src/endpoints/fx.ts';
import { fxExecution } from '../../../src/endpoints/fx-execution.ts';
import { BadParameter } from '../../../src/errors.ts';
import { account, hash, putTrades, toHex } from '../../support/chain/chain-rows.ts';
import { PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run } from './fixture.ts';

const given = useCollected();
const E9 = 1_000_000_000n;
const DEFAULTS = { window: 60, symbol: 'EURC' };

/** 100 for 116, 2,000 for 2,340 and 50 for 58.5 within the hour; an outlier; a trade of an hour ago. */
function fill() {
  const { db } = given();
  const pool = db.prepare("INSERT INTO pools VALUES (?, ?, 'v3', ?, ?, 0, 6, 6, 1)");
  pool.run(account(1), 'Uniswap v3', account(1), account(0xe0));
  pool.run(account(2), 'Aero', account(2), account(0xe0));
  putTrades(db, [
    { block: 800, at: UNTIL - 3600, baseE9: E9, usdcE9: 9n * E9 },
    { block: 900, at: UNTIL - 3599, baseE9: 100n * E9, usdcE9: 116n * E9, pool: account(1) },
    { block: 950, at: UNTIL - 60, baseE9: 2000n * E9, usdcE9: 2340n * E9, pool: account(2) },
    { block: 960, at: UNTIL - 50, baseE9: 50n * E9, usdcE9: (117n * E9) / 2n, pool: account(1) },
    { block: 970, at: UNTIL - 40, baseE9: E9, usdcE9: 500n * E9, pool: account(2), excluded: 'outlier' },
  ]);
}

const LAST = { rate: '1.17', at: UNTIL - 50, block: 960, transaction: toHex(hash(960)) };
const WINDOW = {
  minutes: 60,
  trades: 3,
  excluded: 1,
  volumeBase: '2150',
  volumeUsdc: '2514.5',
  // 2514.5 / 2150 = 1.169534883720…
  vwap: '1.16953488',
  low: '1.16',
  high: '1.17',
  complete: false,
};

describe('fx', () => {
  test('last rate and window, exact', async () => {
    fill();
    expect(await run(fx, given().sources, DEFAULTS)).toEqual({
      symbol: 'EURC',
      last: LAST,
      window: WINDOW,
      ...PROVENANCE,
    });
  });

  test('the window ends with the collected data, not with the clock', async () => {
    fill();
    given().nowMs += 3_600_000;
    expect((await run(fx, given().sources, DEFAULTS)).window).toEqual(WINDOW);
    expect((await run(fx, given().sources, { ...DEFAULTS, window: 5 })).window).toMatchObject({
      trades: 2,
      excluded: 1,
    });
  });

  test('small and large rates keep eight digits', async () => {
    putTrades(given().db, [{ block: 1, at: UNTIL, baseE9: 3_000_000_000_000n, usdcE9: 1 }]);
    expect((await run(fx, given().sources, DEFAULTS)).last).toMatchObject({ rate: '0.00000000000033333333' });
    putTrades(given().db, [{ block: 2, at: UNTIL, baseE9: 3n, usdcE9: 10n ** 15n }]);
    expect((await run(fx, given().sources, DEFAULTS)).last).toMatchObject({ rate: '333333333333333.33333333' });
  });

  test.each([fx, fxExecution])(
    'a symbol is found in any letter case; another is refused with the list',
    async (endpoint) => {
      expect(await run(endpoint, given().sources, { ...DEFAULTS, symbol: 'CIRBTC' })).toMatchObject({
        symbol: 'cirBTC',
        last: null,
      });
      const refused = run(endpoint, given().sources, { ...DEFAULTS, symbol: 'DOGE' });
      await expect(refused).rejects.toBeInstanceOf(BadParameter);
      await expect(refused).rejects.toMatchObject({ status: 400, message: 'symbol: not watched; one of EURC, cirBTC' });
    },
  );

  test('a service that watches no token says so', async () => {
    const collected = { ...given().sources.collected, watched: [] };
    await expect(run(fx, { ...given().sources, collected }, DEFAULTS)).rejects.toThrow('this service watches no token');
  });
});

describe('fx/execution', () => {
  test('rate and slippage by size, venues by volume', async () => {
    fill();
    const reply = await run(fxExecution, given().sources, DEFAULTS);
    const vwap = 2514.5 / 2150;
    const bps = (usdc: number, base: number) =>
      expect.closeTo((Math.abs(usdc - base * vwap) / (base * vwap)) * 10_000, 2);
    expect(reply).toEqual({
      symbol: 'EURC',
      last: LAST,
      window: WINDOW,
      sizes: [
        { fromUsdc: '0', toUsdc: '100', trades: 1, vwap: '1.17', slippageBps: bps(58.5, 50) },
        { fromUsdc: '100', toUsdc: '1000', trades: 1, vwap: '1.16', slippageBps: bps(116, 100) },
        { fromUsdc: '1000', toUsdc: '10000', trades: 1, vwap: '1.17', slippageBps: bps(2340, 2000) },
        { fromUsdc: '10000', toUsdc: '100000', trades: 0, vwap: null, slippageBps: null },
        { fromUsdc: '100000', toUsdc: null, trades: 0, vwap: null, slippageBps: null },
      ],
      venues: [
        { name: 'Aero', address: toHex(account(2)), trades: 1, volumeUsdc: '2340', share: 0.9306 },
        { name: 'Uniswap v3', address: toHex(account(1)), trades: 2, volumeUsdc: '174.5', share: 0.0694 },
      ],
      ...PROVENANCE,
    });
  });

  test('distances do not cancel out: a size whose mean equals the window’s still has slippage', async () => {
    putTrades(given().db, [
      { block: 1, at: UNTIL - 2, baseE9: 10n * E9, usdcE9: 9n * E9 },
      { block: 2, at: UNTIL - 1, baseE9: 10n * E9, usdcE9: 11n * E9 },
    ]);
    const { sizes } = (await run(fxExecution, given().sources, DEFAULTS)) as { sizes: unknown[] };
    expect(sizes[0]).toMatchObject({ vwap: '1', slippageBps: 1000 });
  });
});
