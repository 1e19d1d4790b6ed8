import { describe, expect, test } from 'vitest';
import { fx, fxExecution } from '../../../src/endpoints/fx/fx.ts';
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
      rateUnit: 'USDC/EURC',
      baseUnit: 'EURC',
      last: LAST,
      window: WINDOW,
      detail: expect.any(Object),
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
    const none = { trades: 0, costBps: null };
    const unmeasured = { buys: none, sells: none };
    const off = (usdc: number, base: number) => ({
      deviationFromVwapBps: bps(usdc, base),
      slippageBps: bps(usdc, base),
      ...unmeasured,
    });
    const empty = { trades: 0, vwap: null, deviationFromVwapBps: null, slippageBps: null, ...unmeasured };
    const venue = (name: string, pool: number, trades: number, volumeUsdc: string, share: number) => ({
      name,
      address: toHex(account(pool)),
      trades,
      volumeUsdc,
      volumeShare: share,
      share,
    });
    expect(reply).toEqual({
      symbol: 'EURC',
      rateUnit: 'USDC/EURC',
      baseUnit: 'EURC',
      last: LAST,
      window: WINDOW,
      sizes: [
        { fromUsdc: '0', toUsdc: '100', trades: 1, vwap: '1.17', ...off(58.5, 50) },
        { fromUsdc: '100', toUsdc: '1000', trades: 1, vwap: '1.16', ...off(116, 100) },
        { fromUsdc: '1000', toUsdc: '10000', trades: 1, vwap: '1.17', ...off(2340, 2000) },
        { fromUsdc: '10000', toUsdc: '100000', ...empty },
        { fromUsdc: '100000', toUsdc: null, ...empty },
      ],
      venues: [venue('Aero', 2, 1, '2340', 0.9306), venue('Uniswap v3', 1, 2, '174.5', 0.0694)],
      pools: [
        {
          id: toHex(account(2)),
          venue: 'Aero',
          address: toHex(account(2)),
          trades: 1,
          volumeUsdc: '2340',
          volumeShare: 0.9306,
          state: null,
        },
        {
          id: toHex(account(1)),
          venue: 'Uniswap v3',
          address: toHex(account(1)),
          trades: 2,
          volumeUsdc: '174.5',
          volumeShare: 0.0694,
          state: null,
        },
      ],
      ...PROVENANCE,
    });
  });

  test('a steady drift of the market is no cost: each trade is measured against its pool’s price right before it', async () => {
    const { db, sources } = given();
    db.prepare("INSERT INTO pools VALUES (?, 'Uniswap v3', 'v3', ?, ?, 0, 6, 6, 1)").run(
      ...[account(1), account(1), account(0xe0)],
    );
    // The price rises by 1 % from trade to trade, and each pays 5 bps to the pool; the last is dust and counts as the pool's state alone.
    const trades = Array.from({ length: 10 }, (_, at) => {
      const before = 1.1 * 1.01 ** at;
      const side = at % 2 === 0 ? ('buy' as const) : ('sell' as const);
      const paid = before * (side === 'buy' ? 1.0005 : 0.9995);
      return {
        block: at,
        at: UNTIL - 100 + at,
        baseE9: 10n * E9,
        usdcE9: BigInt(Math.round(10 * paid * 1e9)),
        pool: account(1),
        side,
        priceBefore: before,
        priceAfter: before * 1.01,
        usdcReserve: 2_000_000,
      };
    });
    const dust = { block: 20, at: UNTIL, baseE9: 1, usdcE9: 1, pool: account(1), excluded: 'dust' };
    putTrades(db, [...trades, { ...dust, priceBefore: 1.2, priceAfter: 1.25, usdcReserve: 2_000_000 }]);
    const reply = (await run(fxExecution, sources, DEFAULTS)) as {
      sizes: { deviationFromVwapBps: number; buys: unknown; sells: unknown }[];
      pools: unknown[];
    };
    expect(reply.sizes[0]).toMatchObject({
      buys: { trades: 5, costBps: expect.closeTo(5, 2) },
      sells: { trades: 5, costBps: expect.closeTo(5, 2) },
    });
    expect(reply.sizes[0]!.deviationFromVwapBps).toBeGreaterThan(200);
    expect(reply.pools).toEqual([
      {
        id: toHex(account(1)),
        venue: 'Uniswap v3',
        address: toHex(account(1)),
        trades: 10,
        volumeUsdc: expect.any(String),
        volumeShare: 1,
        // 2,000,000 x (sqrt(1.001) - 1)
        state: { rate: '1.25', at: UNTIL, depth10BpsUsdc: '999.750125' },
      },
    ]);
  });

  test('trades whose pool was not seen before them are not measured, and the answer says how many are', async () => {
    putTrades(given().db, [
      { block: 1, at: UNTIL - 2, baseE9: 10n * E9, usdcE9: 11n * E9, side: 'buy', priceAfter: 1 },
      { block: 2, at: UNTIL - 1, baseE9: 10n * E9, usdcE9: 11n * E9, side: 'buy', priceBefore: 1, priceAfter: 1 },
    ]);
    const { sizes } = (await run(fxExecution, given().sources, DEFAULTS)) as { sizes: unknown[] };
    expect(sizes[0]).toMatchObject({ trades: 2, buys: { trades: 1, costBps: 1000 }, sells: { trades: 0 } });
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
