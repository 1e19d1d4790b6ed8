import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import type { SizeTotals, VenueTotals, WindowTotals } from '../../collector/store/trades.ts';
import { detailField, field, paidDetail } from '../fields.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  keptUntilWritten,
  provenance,
  provenanceFields,
  soldUntil,
} from '../freshness.ts';
import {
  EXAMPLE_FX,
  EXAMPLE_POOL,
  fxParams,
  fxUnits,
  lastTrade,
  poolsField,
  rate,
  rateOf,
  shareOf,
  showCost,
  showLast,
  showPool,
  showUsdc,
  showWindow,
  sideCosts,
  unitsOf,
  watchedToken,
  windowField,
  windowOf,
} from './fields.ts';

// A watched token's trades over a window: rate and volume (free); execution by size, venue and pool (paid).

const E9 = 1_000_000_000n;
/** Size classes in USDC: from a card payment to a treasury transfer. */
const BOUNDS = [100n, 1000n, 10_000n, 100_000n].map((usdc) => usdc * E9);

const deviation = field.numberOrNull(
  "How far these trades were from the window's volume-weighted rate, in hundredths of a percent: the sum of |USDC " +
    "moved - base moved x vwap| by the sum of base moved x vwap. It grows with the market's own movement within the " +
    'window',
);

export const fxExecution = defineEndpoint({
  path: '/fx/execution',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Execution quality',
  summary:
    'Volume-weighted rate and range, what buys and sells of each size cost against their pool’s price, and the ' +
    'venues and pools where a watched token traded against USDC.',
  notFor: 'central-bank rates, or for trading',
  tags: 'swap, slippage, vwap, dex, liquidity, spread, euro stablecoin EURC, trading volume',
  ofChain: true,
  freeSummary: '/v1/fx',
  params: fxParams,
  result: z.strictObject({
    symbol: z.string(),
    ...fxUnits,
    last: lastTrade,
    window: windowField,
    sizes: field.list('Rate and cost by the size of the trade', {
      fromUsdc: field.usdc('Trades of at least so much USDC'),
      toUsdc: field.alsoNull('null: no bound', field.usdc('and of less than this')),
      trades: z.int().nonnegative(),
      vwap: field.orNull('Volume-weighted rate of these trades; null without any', rate),
      ...sideCosts,
      deviationFromVwapBps: deviation,
      slippageBps: deviation.meta({
        description: 'The same as deviationFromVwapBps, under its old name. It is no cost: see buys and sells',
      }),
    }),
    venues: field.list('Where the volume was traded, largest first', {
      name: field.text('The place of trade'),
      address: field.address('The contract that executed: the pool, or Uniswap v4’s pool manager for all of its pools'),
      trades: z.int().positive(),
      volumeUsdc: field.usdc('In USDC'),
      volumeShare: z.number().meta({ description: 'Of the volume in USDC, 0 to 1' }),
      share: z.number().meta({ description: 'The same, under its old name' }),
    }),
    pools: poolsField,
    ...provenanceFields,
  }),
  example: {
    params: { window: '60', symbol: 'EURC' },
    result: {
      ...EXAMPLE_FX,
      sizes: [
        {
          fromUsdc: '0',
          toUsdc: '100',
          trades: 1211,
          vwap: '1.1651',
          buys: { trades: 640, costBps: 5.02 },
          sells: { trades: 571, costBps: 5.01 },
          deviationFromVwapBps: 4.21,
          slippageBps: 4.21,
        },
        {
          fromUsdc: '100000',
          toUsdc: null,
          trades: 0,
          vwap: null,
          buys: { trades: 0, costBps: null },
          sells: { trades: 0, costBps: null },
          deviationFromVwapBps: null,
          slippageBps: null,
        },
      ],
      venues: [
        {
          name: 'Uniswap v4',
          address: '0x8366a39cc670b4001a1121b8f6a443a643e40951',
          trades: 1702,
          volumeUsdc: '451022.917731',
          volumeShare: 0.9379,
          share: 0.9379,
        },
      ],
      pools: [EXAMPLE_POOL],
      ...EXAMPLE_PROVENANCE,
    },
  },
  checkParams({ symbol }, { collected }: Pick<Collected, 'collected'>) {
    watchedToken(collected, symbol);
  },
  async run({ window, symbol }, sources: Collected) {
    const { reads } = sources;
    const token = watchedToken(sources.collected, symbol);
    const asked = windowOf(token, window, soldUntil(sources));
    const totals = reads.tradesIn(asked);
    const vwap = totals.baseE9 === 0n ? 0 : Number(totals.usdcE9) / Number(totals.baseE9);
    const sizes = reads.tradesBySize(asked, BOUNDS, vwap);
    const costs = reads.tradeCosts(asked, BOUNDS);
    return {
      symbol: token.symbol,
      ...unitsOf(token.symbol),
      last: showLast(reads.lastTrade(token.address)),
      window: showWindow(window, totals),
      sizes: sizes.map((size, at) => ({
        ...showSize([BOUNDS[at - 1] ?? 0n, BOUNDS[at] ?? null], size, vwap),
        buys: showCost(costs, at, 'buy'),
        sells: showCost(costs, at, 'sell'),
      })),
      venues: reads.tradesByVenue(asked).map((venue) => showVenue(venue, totals)),
      pools: reads.tradesByPool(asked).map((pool) => showPool(pool, totals.usdcE9)),
      ...provenance(sources),
    };
  },
});

function showSize([fromE9, toE9]: readonly [bigint, bigint | null], size: SizeTotals, vwap: number) {
  const fair = Number(size.baseE9) * vwap;
  const deviationBps = fair > 0 ? Math.round((size.distanceE9 / fair) * 1e6) / 100 : null;
  return {
    fromUsdc: showUsdc(fromE9),
    toUsdc: toE9 === null ? null : showUsdc(toE9),
    trades: size.trades,
    vwap: rateOf(size),
    deviationFromVwapBps: deviationBps,
    slippageBps: deviationBps,
  };
}

function showVenue({ name, address, trades, usdcE9 }: VenueTotals, totals: WindowTotals) {
  const share = shareOf(usdcE9, totals.usdcE9);
  return { name, address, trades, volumeUsdc: showUsdc(usdcE9), volumeShare: share, share };
}

const DETAIL = paidDetail(
  fxExecution,
  'what buys and sells of each size cost against their pool’s price, the venues, and how deep each pool is',
);

export const fx = defineEndpoint({
  path: '/fx',
  access: 'free',
  label: 'Executed rate',
  summary: 'Last executed rate of a watched token against USDC, and a summary of the window.',
  notFor: 'central-bank rates, or for trading',
  tags: null,
  ofChain: true,
  params: fxParams,
  result: z.strictObject({
    symbol: z.string(),
    ...fxUnits,
    last: lastTrade,
    window: windowField,
    detail: detailField,
    ...provenanceFields,
  }),
  ...keptUntilWritten,
  example: {
    params: { window: '60', symbol: 'EURC' },
    result: { ...EXAMPLE_FX, detail: DETAIL, ...EXAMPLE_PROVENANCE },
  },
  async run({ window, symbol }, sources: Collected) {
    const token = watchedToken(sources.collected, symbol);
    const asked = windowOf(token, window, collectedUntil(sources));
    return {
      symbol: token.symbol,
      ...unitsOf(token.symbol),
      last: showLast(sources.reads.lastTrade(token.address)),
      window: showWindow(window, sources.reads.tradesIn(asked)),
      detail: DETAIL,
      ...provenance(sources),
    };
  },
});
