import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import type { Amounts } from '../collector/store/trades.ts';
import { Unavailable } from '../errors.ts';
import { secondsSince } from '../lib/clock.ts';
import { DAY_SECONDS, field, percentOf } from './fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, provenance, provenanceFields, soldUntil } from './freshness.ts';
import {
  fxUnits,
  lastTrade,
  poolsField,
  rate,
  rateOf,
  showLast,
  showPool,
  showUsdc,
  showWindow,
  unitsOf,
  windowField,
  windowOf,
} from './fx/fields.ts';
import type { Sources, WatchedToken } from './sources.ts';

// What watched tokens are traded for in USDC: all of them over the last hour, one of them over a day with its pools.

const nullableRate = (description: string) =>
  field.orNull(`${description}; USDC for one whole token, null without a trade`, rate);

const ageField = field.countOrNull('Time since that trade; null without one');

const changeField = field
  .percent(
    'From the last trade at or before 24 hours ago to the last trade; null when there was none, or when blocks since ' +
      'then were not searched',
  )
  .nullable();

const pair = z.strictObject({
  symbol: field.text('The base token; the quote is USDC'),
  token: field.address('Its contract'),
  rateUnit: fxUnits.rateUnit,
  last: field.objectOrNull('The newest executed trade that counts; null when none is stored', {
    rate,
    at: field.at('Time of its block'),
  }),
  ageSeconds: ageField,
  vwap1h: nullableRate('Volume-weighted rate of the last hour: all USDC by all base tokens'),
  low1h: nullableRate('Lowest rate of a trade of the hour'),
  high1h: nullableRate('Highest rate of a trade of the hour'),
  trades1h: field.count('Trades of the hour that count: no dust, no outliers'),
  volumeUsdc1h: field.usdc('USDC traded in the hour'),
  complete1h: field.boolean('Whether every block of the hour was searched for trades'),
  change24hPercent: changeField,
  change24h: field.percent('The same, under its old name').nullable(),
});

export const marketPrices = defineEndpoint({
  path: '/market/prices',
  access: 'paid',
  onlyOn: 'lightning',
  priceUsd: '0.002',
  label: 'Market prices',
  summary:
    'Executed prices of every watched token against USDC: last trade and its age, the last hour’s volume-weighted ' +
    'rate, range, trades and volume, and the change over 24 hours.',
  notFor: 'listed shares, coins of other chains, or trading',
  tags: null,
  ofChain: true,
  freeSummary: '/v1/fx',
  params: z.object({}),
  result: z.strictObject({
    pairs: z.array(pair).meta({
      description: 'In the order in which the service lists them; hour and day end with the newest collected block',
    }),
    ...provenanceFields,
  }),
  example: {
    params: {},
    result: {
      pairs: [
        {
          symbol: 'EURC',
          token: '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1',
          rateUnit: 'USDC/EURC',
          last: { rate: '1.16512', at: 1795199395 },
          ageSeconds: 6,
          vwap1h: '1.16518742',
          low1h: '1.1639',
          high1h: '1.1664',
          trades1h: 1840,
          volumeUsdc1h: '480911.442907',
          complete1h: true,
          change24hPercent: '-0.1823',
          change24h: '-0.1823',
        },
      ],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { watched } = sources.collected;
    if (watched.length === 0) {
      throw new Unavailable('market_unavailable', 'This service watches no token, so it has no price.', RETRY_SECONDS);
    }
    const until = soldUntil(sources);
    return { pairs: watched.map((token) => showPair(token, sources, until)), ...provenance(sources) };
  },
});

const WINDOW_MINUTES = 60;
/** Long: a service that watches no token does so until its configuration changes. */
const RETRY_SECONDS = 3600;

function showPair(token: WatchedToken, sources: Collected, until: number): z.input<typeof pair> {
  const { reads, clock } = sources;
  const hour = reads.tradesIn(windowOf(token, WINDOW_MINUTES, until));
  const newest = reads.lastTrade(token.address);
  const last = showLast(newest);
  const change = changeOf(reads.tradeAsOf(token.address, until - DAY_SECONDS), newest);
  return {
    symbol: token.symbol,
    token: token.address,
    rateUnit: unitsOf(token.symbol).rateUnit,
    last: last && { rate: last.rate, at: last.at },
    ageSeconds: last && secondsSince(last.at, clock),
    vwap1h: rateOf(hour),
    low1h: rateOf(hour.low),
    high1h: rateOf(hour.high),
    trades1h: hour.trades,
    volumeUsdc1h: showUsdc(hour.usdcE9),
    complete1h: hour.complete,
    change24hPercent: change,
    change24h: change,
  };
}

/** The usual token has a handful. Pools of Uniswap v4 cost their creator next to nothing. */
const MAX_POOLS = 20;

export const marketField = field.objectOrNull(
  'Price, volume and pools from executed trades; null for a token whose trades are not collected',
  {
    symbol: field.text('As this service lists it'),
    ...fxUnits,
    last: lastTrade,
    ageSeconds: ageField,
    window: windowField.meta({ description: 'Executed trades of the 24 hours up to the newest collected block' }),
    change24hPercent: changeField,
    pools: poolsField,
    poolsTruncated: field.boolean(`true when there are more than the ${MAX_POOLS} listed`),
  },
);

const NOT_WATCHED =
  'this service collects trades and transfers of the tokens that it watches, and this is none of them';
const IS_USDC = 'USDC is what prices are quoted in, and its transfers are not collected';

/** Why nothing of a token is collected; null for a watched token. */
export function uncollectedReason(
  { collected, usdc }: Pick<Sources, 'collected' | 'usdc'>,
  address: string,
): string | null {
  if (address === usdc.toLowerCase()) return IS_USDC;
  return collected.watched.some((token) => token.address === address) ? null : NOT_WATCHED;
}

const DAY_MINUTES = DAY_SECONDS / 60;

/** `until`: Unix seconds. */
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

/** The change of the rate in percent, from fractions, so that only the result is rounded. */
function changeOf(from: Amounts | null, to: Amounts | null): string | null {
  if (from === null || to === null) return null;
  const before = from.usdcE9 * to.baseE9;
  return percentOf(to.usdcE9 * from.baseE9 - before, before);
}
