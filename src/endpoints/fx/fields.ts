import { z } from 'zod';
import { integerParam } from '../../catalogue/params.ts';
import type {
  Amounts,
  CostTotals,
  LastTrade,
  PoolTotals,
  TradeWindow,
  WindowTotals,
} from '../../collector/store/trades.ts';
import { BadParameter } from '../../errors.ts';
import { divide, formatDecimal, formatUnits, formatUsdc, USDC_DECIMALS } from '../../lib/units.ts';
import { field, roundTo } from '../fields.ts';
import type { CollectedSettings, WatchedToken } from '../sources.ts';

// What executed trades of a watched token say: the rate and totals of a window, the cost of a size against the pool's
// price, and the pools with their depth.

export const fxParams = z.object({
  window: integerParam({ min: 5, max: 1440, default: 60, description: 'Minutes, up to the newest collected block' }),
  symbol: z
    .string()
    .regex(/^[A-Za-z0-9.$_-]{1,16}$/, 'the symbol of a watched token')
    .default('EURC')
    .meta({
      description:
        'The base token, quoted in USDC; letter case does not matter. A symbol that is not watched gets 400 with the ' +
        'list of watched ones',
    }),
});

export const rate = field.decimal(
  'USDC for one whole token, rounded once to at least 8 decimals and 8 significant digits',
);

export const lastTrade = field.objectOrNull('The newest executed trade that counts; null when none is stored', {
  rate,
  at: field.at('Time of its block'),
  block: z.int().nonnegative(),
  transaction: field.hash('The transaction that traded'),
});

const nullableRate = (description: string) => field.orNull(`${description}; null without a trade`, rate);

export const windowField = field.object('Executed trades of the window', {
  minutes: z.int().positive(),
  trades: field.count('Trades that count'),
  excluded: field.count('Trades left out: dust, and rates too far from the running median of their neighbours'),
  volumeBase: field.decimal('Sum in whole base tokens'),
  volumeUsdc: field.usdc('Sum in USDC'),
  vwap: nullableRate('Volume-weighted rate: all USDC by all base tokens'),
  low: nullableRate('Lowest rate of a trade'),
  high: nullableRate('Highest rate of a trade'),
  complete: field.boolean('Whether every block of the window was searched for trades'),
});

export const fxUnits = {
  rateUnit: field.text('The unit of every rate here: USDC for one whole base token'),
  baseUnit: field.text('The unit of base amounts: whole base tokens'),
};

export const unitsOf = (symbol: string) => ({ rateUnit: `USDC/${symbol}`, baseUnit: symbol });

export const EXAMPLE_FX = {
  symbol: 'EURC',
  ...unitsOf('EURC'),
  last: { rate: '1.16512', at: 1795199395, block: 32249990, transaction: `0x${'3e'.repeat(32)}` },
  window: {
    minutes: 60,
    trades: 1840,
    excluded: 12,
    volumeBase: '412733.118204',
    volumeUsdc: '480911.442907',
    vwap: '1.16518742',
    low: '1.1639',
    high: '1.1664',
    complete: true,
  },
};

const side = (what: string, against: string) =>
  field.object(what, {
    trades: field.count('Measured trades: those before which their pool was seen'),
    costBps: field.numberOrNull(
      `How much ${against} than at the price of the same pool right before each trade, in hundredths of a ` +
        "percent, by volume: the pool's fee and the price that the trade itself moved. The market's own movement " +
        'is not in it. null without a measured trade',
    ),
  });

export const sideCosts = {
  buys: side('Trades that bought the token for USDC', 'more USDC they paid'),
  sells: side('Trades that sold the token for USDC', 'less USDC they got'),
};

export const poolsField = field.list('Each pool in which the token was traded, largest volume first, with its depth', {
  id: z
    .string()
    .regex(/^0x([0-9a-f]{40}|[0-9a-f]{64})$/)
    .meta({ description: 'The pool: its address, or its id in Uniswap v4' }),
  venue: field.text('The place of trade'),
  address: field.address('The contract that executed'),
  trades: z.int().positive(),
  volumeUsdc: field.usdc('In USDC'),
  volumeShare: z.number().meta({ description: 'Of the volume in USDC, 0 to 1' }),
  state: field.objectOrNull('The pool now; null when its events do not say it', {
    rate: rate.meta({
      description: 'USDC for one whole token at which the pool stood after its newest trade, without its fee',
    }),
    at: field.at('Time of that trade'),
    depth10BpsUsdc: field.usdc('In USDC').meta({
      description:
        'USDC that moves the pool’s rate by 0.1 %, by its reserves or by its liquidity at that rate; what lies ' +
        'further from the rate is not known',
    }),
  }),
});

export const EXAMPLE_POOL = {
  id: '0xeb0fd02fb8044d5514fb6e165ee134fd547eff0378bb33b76f4b81d8b03bd1ae',
  venue: 'Uniswap v4',
  address: '0x8366a39cc670b4001a1121b8f6a443a643e40951',
  trades: 1702,
  volumeUsdc: '451022.917731',
  volumeShare: 0.9379,
  state: { rate: '1.1651207', at: 1795199395, depth10BpsUsdc: '1024.380112' },
};

/** Throws BadParameter with the list of watched tokens. */
export function watchedToken({ watched }: Pick<CollectedSettings, 'watched'>, symbol: string): WatchedToken {
  const token = watched.find((candidate) => candidate.symbol.toLowerCase() === symbol.toLowerCase());
  if (token !== undefined) return token;
  const list = watched.map((candidate) => candidate.symbol).join(', ');
  const message = list === '' ? 'not watched; this service watches no token' : `not watched; one of ${list}`;
  throw new BadParameter([{ path: 'symbol', message }]);
}

export function windowOf(token: WatchedToken, minutes: number, until: number): TradeWindow {
  return { token: token.address, after: until - minutes * 60, to: until };
}

/** Collected amounts are in 10^-9 of a whole token. */
const DECIMALS = 9;
/** Eight digits suit tokens worth a millionth and tokens worth a hundred thousand. */
const PRECISION = { decimals: 8, significant: 8 };

/** USDC divided by base tokens, rounded once; null without a trade. */
export function rateOf(amounts: Amounts | null): string | null {
  if (amounts === null || amounts.baseE9 === 0n) return null;
  const [usdc, base] = [amounts.usdcE9, amounts.baseE9].map((digits) => ({ digits, scale: DECIMALS }));
  return usdc && base ? formatDecimal(divide(usdc, base, PRECISION)) : null;
}

const showE9 = (amount: bigint): string => formatUnits(amount, DECIMALS);
export const showUsdc = (amountE9: bigint): string => formatUsdc(amountE9, DECIMALS);

export function showLast(trade: LastTrade | null): z.output<typeof lastTrade> {
  const price = rateOf(trade);
  if (trade === null || price === null) return null;
  return { rate: price, at: trade.at, block: trade.block, transaction: trade.transaction };
}

export function showWindow(minutes: number, totals: WindowTotals): z.output<typeof windowField> {
  return {
    minutes,
    trades: totals.trades,
    excluded: totals.excluded,
    volumeBase: showE9(totals.baseE9),
    volumeUsdc: showUsdc(totals.usdcE9),
    vwap: rateOf(totals),
    low: rateOf(totals.low),
    high: rateOf(totals.high),
    complete: totals.complete,
  };
}

/** `totals` has at most one entry for the size. */
export function showCost(totals: readonly CostTotals[], size: number, of: CostTotals['side']) {
  const found = totals.find((total) => total.size === size && total.side === of);
  if (found === undefined || found.fairE9 <= 0) return { trades: 0, costBps: null };
  return { trades: found.trades, costBps: Math.round((found.costE9 / found.fairE9) * 1e6) / 100 };
}

/** At 0.1 % a trade meets little but the liquidity at the price. */
const DEPTH_BPS = 10;
/** What must come into a pool of constant product for that move, as a share of the USDC in it. */
const DEPTH_SHARE = Math.sqrt(1 + DEPTH_BPS / 10_000) - 1;

export function showPool(
  { id, venue, emitter, trades, usdcE9, state }: PoolTotals,
  total: bigint,
): z.output<typeof poolsField>[number] {
  return {
    id,
    venue,
    address: emitter,
    trades,
    volumeUsdc: showUsdc(usdcE9),
    volumeShare: shareOf(usdcE9, total),
    state: state && {
      rate: showRate(state.price),
      at: state.at,
      depth10BpsUsdc: formatUnits(BigInt(Math.round(state.usdcReserve * DEPTH_SHARE * 1e6)), USDC_DECIMALS),
    },
  };
}

export function shareOf(part: bigint, total: bigint): number {
  return roundTo(4, Number(part) / Number(total));
}

/** A pool's rate is a float with about 15 significant digits. */
const RATE_DIGITS = 8;

function showRate(price: number): string {
  return price.toLocaleString('en-US', { useGrouping: false, maximumSignificantDigits: RATE_DIGITS });
}
