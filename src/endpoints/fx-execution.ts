import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import type { SizeTotals, VenueTotals, WindowTotals } from '../store/chain/fx-reads.ts';
import { addressField, decimal } from './chain-fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, provenance, soldUntil } from './freshness.ts';
import {
  EXAMPLE_FX,
  fxParams,
  lastTrade,
  rate,
  rateOf,
  showE9,
  showLast,
  showWindow,
  watchedToken,
  windowField,
  windowOf,
} from './fx-fields.ts';

const E9 = 1_000_000_000n;
/** Size classes of a trade in USDC, a factor of ten apart: from a card payment to a treasury transfer. */
const BOUNDS = [100n, 1000n, 10_000n, 100_000n].map((usdc) => usdc * E9);

const result = z.strictObject({
  symbol: z.string(),
  last: lastTrade,
  window: windowField,
  sizes: z
    .array(
      z.strictObject({
        fromUsdc: decimal('Trades of at least so much USDC'),
        toUsdc: decimal('and of less than this')
          .nullable()
          .meta({ description: 'and of less than this; null: no bound' }),
        trades: z.int().nonnegative(),
        vwap: rate.nullable().meta({ description: 'Volume-weighted rate of these trades; null without any' }),
        slippageBps: z.number().nullable().meta({
          description:
            "How far these trades were from the window's volume-weighted rate, in hundredths of a percent: the sum of |USDC moved - base moved x vwap| by the sum of base moved x vwap. It holds fee, price impact and the price's own movement within the window, which a shorter window leaves out",
        }),
      }),
    )
    .meta({ description: 'Rate by the size of the trade' }),
  venues: z
    .array(
      z.strictObject({
        name: z.string().meta({ description: 'The place of trade' }),
        address: addressField(
          'The contract that executed: the pool, or Uniswap v4’s pool manager for all of its pools',
        ),
        trades: z.int().positive(),
        volumeUsdc: decimal('In USDC'),
        share: z.number().meta({ description: 'Of the volume in USDC, 0 to 1' }),
      }),
    )
    .meta({ description: 'Where the volume was traded, largest first' }),
  freshness,
  source: sourceSchema,
});

/** The execution quality of a watched token's trades. */
export const fxExecution = defineEndpoint({
  path: '/fx/execution',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Execution quality',
  summary:
    'Volume-weighted rate, range, rate and slippage by trade size, and the venues where a watched token traded against USDC.',
  freeSummary: '/v1/fx',
  params: fxParams,
  result,
  example: {
    params: { window: '60', symbol: 'EURC' },
    result: {
      ...EXAMPLE_FX,
      sizes: [
        { fromUsdc: '0', toUsdc: '100', trades: 1211, vwap: '1.1651', slippageBps: 4.21 },
        { fromUsdc: '100000', toUsdc: null, trades: 0, vwap: null, slippageBps: null },
      ],
      venues: [
        {
          name: 'Uniswap v4',
          address: '0x8366a39cc670b4001a1121b8f6a443a643e40951',
          trades: 1702,
          volumeUsdc: '451022.917731',
          share: 0.9379,
        },
      ],
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
    return {
      symbol: token.symbol,
      last: showLast(reads.lastTrade(token.address)),
      window: showWindow(window, totals),
      sizes: sizes.map((size, at) => showSize([BOUNDS[at - 1] ?? 0n, BOUNDS[at] ?? null], size, vwap)),
      venues: reads.tradesByVenue(asked).map((venue) => showVenue(venue, totals)),
      ...provenance(sources),
    };
  },
});

function showSize([fromE9, toE9]: readonly [bigint, bigint | null], size: SizeTotals, vwap: number) {
  const fair = Number(size.baseE9) * vwap;
  return {
    fromUsdc: showE9(fromE9),
    toUsdc: toE9 === null ? null : showE9(toE9),
    trades: size.trades,
    vwap: rateOf(size),
    slippageBps: fair > 0 ? Math.round((size.distanceE9 / fair) * 1e6) / 100 : null,
  };
}

function showVenue({ name, address, trades, usdcE9 }: VenueTotals, totals: WindowTotals) {
  const share = Math.round((Number(usdcE9) / Number(totals.usdcE9)) * 1e4) / 1e4;
  return { name, address, trades, volumeUsdc: showE9(usdcE9), share };
}
