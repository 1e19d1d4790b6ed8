import { z } from 'zod';
import type { CostTotals, PoolTotals } from '../collector/store/costs.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import { addressField, atField, usdcField } from './chain-fields.ts';
import { rate, showUsdc } from './fx-fields.ts';

/** The move for which a pool's depth is given. Over ten hundredths of a percent the liquidity at the price is nearly all that a trade meets. */
const DEPTH_BPS = 10;
/** Of a pool of constant product: the USDC that must come in for its price to rise by that much, as a share of the USDC in it. */
const DEPTH_SHARE = Math.sqrt(1 + DEPTH_BPS / 10_000) - 1;
/** A rate of a pool is a float with about 15 significant digits; eight are shown, as of other rates. */
const RATE_DIGITS = 8;

const side = (what: string, against: string) =>
  z
    .strictObject({
      trades: z.int().nonnegative().meta({ description: 'Measured trades: those before which their pool was seen' }),
      costBps: z
        .number()
        .nullable()
        .meta({
          description: `How much ${against} than at the price of the same pool right before each trade, in hundredths of a percent, by volume: the pool's fee and the price that the trade itself moved. The market's own movement is not in it. null without a measured trade`,
        }),
    })
    .meta({ description: what });

/** What trades of a size cost, by side. */
export const sideCosts = {
  buys: side('Trades that bought the token for USDC', 'more USDC they paid'),
  sells: side('Trades that sold the token for USDC', 'less USDC they got'),
};

/** The pools of a window, with how deep they are. */
export const poolsField = z
  .array(
    z.strictObject({
      id: z
        .string()
        .regex(/^0x([0-9a-f]{40}|[0-9a-f]{64})$/)
        .meta({ description: 'The pool: its address, or its id in Uniswap v4' }),
      venue: z.string().meta({ description: 'The place of trade' }),
      address: addressField('The contract that executed'),
      trades: z.int().positive(),
      volumeUsdc: usdcField('In USDC'),
      volumeShare: z.number().meta({ description: 'Of the volume in USDC, 0 to 1' }),
      state: z
        .strictObject({
          rate: rate.meta({
            description: 'USDC for one whole token at which the pool stood after its newest trade, without its fee',
          }),
          at: atField('Time of that trade'),
          depth10BpsUsdc: usdcField('In USDC').meta({
            description:
              'USDC that moves the pool’s rate by 0.1 %, by its reserves or by its liquidity at that rate; what lies further from the rate is not known',
          }),
        })
        .nullable()
        .meta({ description: 'The pool now; null when its events do not say it' }),
    }),
  )
  .meta({ description: 'Each pool in which the token was traded, largest volume first, with its depth' });

/** The cost of one side of a size. `totals` has at most one entry of each size and side. */
export function showCost(totals: readonly CostTotals[], size: number, of: CostTotals['side']) {
  const found = totals.find((total) => total.size === size && total.side === of);
  if (found === undefined || found.fairE9 <= 0) return { trades: 0, costBps: null };
  return { trades: found.trades, costBps: Math.round((found.costE9 / found.fairE9) * 1e6) / 100 };
}

export function showPool(
  { id, venue, emitter, trades, usdcE9, state }: PoolTotals,
  total: bigint,
): z.output<typeof poolsField>[number] {
  return {
    ...{ id, venue, address: emitter, trades, volumeUsdc: showUsdc(usdcE9), volumeShare: shareOf(usdcE9, total) },
    state: state && {
      rate: showRate(state.price),
      at: state.at,
      depth10BpsUsdc: formatUnits(BigInt(Math.round(state.usdcReserve * DEPTH_SHARE * 1e6)), USDC_DECIMALS),
    },
  };
}

export const EXAMPLE_POOL = {
  id: '0xeb0fd02fb8044d5514fb6e165ee134fd547eff0378bb33b76f4b81d8b03bd1ae',
  venue: 'Uniswap v4',
  address: '0x8366a39cc670b4001a1121b8f6a443a643e40951',
  trades: 1702,
  volumeUsdc: '451022.917731',
  volumeShare: 0.9379,
  state: { rate: '1.1651207', at: 1795199395, depth10BpsUsdc: '1024.380112' },
};

/** Four decimals. */
export function shareOf(part: bigint, total: bigint): number {
  return Math.round((Number(part) / Number(total)) * 1e4) / 1e4;
}

/** A float as digits, without an exponent. */
function showRate(price: number): string {
  return price.toLocaleString('en-US', { useGrouping: false, maximumSignificantDigits: RATE_DIGITS });
}
