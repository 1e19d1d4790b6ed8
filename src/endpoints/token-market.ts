import { z } from 'zod';
import type { Amounts } from '../collector/store/costs.ts';
import { secondsSince } from '../lib/clock.ts';
import { poolsField, showPool } from './execution-fields.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import type { Collected } from './freshness.ts';
import { fxUnits, lastTrade, showLast, showWindow, unitsOf, windowField, windowOf } from './fx-fields.ts';
import { percentField, percentOf } from './percent-fields.ts';
import type { Sources } from './sources.ts';

const DAY_MINUTES = DAY_SECONDS / 60;
/** The usual token has a handful. Pools of Uniswap v4 cost their creator next to nothing. */
const MAX_POOLS = 20;

/** A watched token's trades against USDC. */
export const marketField = z
  .strictObject({
    symbol: z.string().meta({ description: 'As this service lists it' }),
    ...fxUnits,
    last: lastTrade,
    ageSeconds: z.int().nonnegative().nullable().meta({ description: 'Time since that trade; null without one' }),
    window: windowField.meta({ description: 'Executed trades of the 24 hours up to the newest collected block' }),
    change24hPercent: percentField(
      'From the last trade at or before 24 hours ago to the last trade; null when there was none, or when blocks since then were not searched',
    ).nullable(),
    pools: poolsField,
    poolsTruncated: z.boolean().meta({ description: `true when there are more than the ${MAX_POOLS} listed` }),
  })
  .nullable()
  .meta({
    description: 'Price, volume and pools from executed trades; null for a token whose trades are not collected',
  });

/** Why a token's trades are not in the answer. */
const NOT_WATCHED =
  'this service collects trades and transfers of the tokens that it watches, and this is none of them';
const IS_USDC = 'USDC is what prices are quoted in, and its transfers are not collected';

/** The reason why nothing of a token is collected; null for a watched token. */
export function uncollectedReason(
  { collected, usdc }: Pick<Sources, 'collected' | 'usdc'>,
  address: string,
): string | null {
  if (address === usdc.toLowerCase()) return IS_USDC;
  return collected.watched.some((token) => token.address === address) ? null : NOT_WATCHED;
}

/** A watched token's market up to `until`, in Unix seconds. */
export function showMarket(
  { reads, clock, collected }: Pick<Collected, 'reads' | 'clock' | 'collected'>,
  address: `0x${string}`,
  until: number,
): z.output<typeof marketField> {
  const token = collected.watched.find((watched) => watched.address === address);
  if (token === undefined) return null;
  const window = windowOf(token, DAY_MINUTES, until);
  const totals = reads.tradesIn(window);
  const newest = reads.lastTrade(address);
  const last = showLast(newest);
  const pools = reads.tradesByPool(window);
  return {
    symbol: token.symbol,
    ...unitsOf(token.symbol),
    last,
    ageSeconds: last && secondsSince(last.at, clock),
    window: showWindow(DAY_MINUTES, totals),
    change24hPercent: changeOf(reads.tradeAsOf(address, until - DAY_SECONDS), newest),
    pools: pools.slice(0, MAX_POOLS).map((pool) => showPool(pool, totals.usdcE9)),
    poolsTruncated: pools.length > MAX_POOLS,
  };
}

/** The change of the rate from one trade to another in percent, from fractions, so that only the result is rounded. */
export function changeOf(from: Amounts | null, to: Amounts | null): string | null {
  if (from === null || to === null) return null;
  const before = from.usdcE9 * to.baseE9;
  return percentOf(to.usdcE9 * from.baseE9 - before, before);
}
