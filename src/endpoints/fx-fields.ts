import { z } from 'zod';
import { integerParam } from '../catalogue/params.ts';
import type { Amounts, LastTrade, TradeWindow, WindowTotals } from '../collector/store/costs.ts';
import { BadParameter } from '../errors.ts';
import { divide, formatDecimal, formatUnits, formatUsdc } from '../lib/units.ts';
import { atField, decimal, hashField, usdcField } from './chain-fields.ts';
import type { CollectedSettings, WatchedToken } from './collected-settings.ts';

/** Amounts are collected in 10^-9 of a whole token. */
const DECIMALS = 9;
/** A rate is a quotient, rounded once. Eight significant digits suit tokens worth a millionth and tokens worth a hundred thousand. */
const PRECISION = { decimals: 8, significant: 8 };

export const fxParams = z.object({
  window: integerParam({ min: 5, max: 1440, default: 60, description: 'Minutes, up to the newest collected block' }),
  symbol: z
    .string()
    .regex(/^[A-Za-z0-9.$_-]{1,16}$/, 'the symbol of a watched token')
    .default('EURC')
    .meta({
      description:
        'The base token, quoted in USDC; letter case does not matter. A symbol that is not watched gets 400 with the list of watched ones',
    }),
});

/** USDC for one whole base token. */
export const rate = decimal('USDC for one whole token, rounded once to at least 8 decimals and 8 significant digits');

export const lastTrade = z
  .strictObject({
    rate,
    at: atField('Time of its block'),
    block: z.int().nonnegative(),
    transaction: hashField('The transaction that traded'),
  })
  .nullable()
  .meta({ description: 'The newest executed trade that counts; null when none is stored' });

const nullableRate = (description: string) =>
  rate.nullable().meta({ description: `${description}; null without a trade` });

export const windowField = z
  .strictObject({
    minutes: z.int().positive(),
    trades: z.int().nonnegative().meta({ description: 'Trades that count' }),
    excluded: z.int().nonnegative().meta({
      description: 'Trades left out: dust, and rates too far from the running median of their neighbours',
    }),
    volumeBase: decimal('Sum in whole base tokens'),
    volumeUsdc: usdcField('Sum in USDC'),
    vwap: nullableRate('Volume-weighted rate: all USDC by all base tokens'),
    low: nullableRate('Lowest rate of a trade'),
    high: nullableRate('Highest rate of a trade'),
    complete: z.boolean().meta({ description: 'Whether every block of the window was searched for trades' }),
  })
  .meta({ description: 'Executed trades of the window' });

/** The watched token of a symbol. Throws BadParameter for another symbol, with the list of watched ones. */
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

/** The rate: USDC divided by base tokens. Null without a trade. */
export function rateOf(amounts: Amounts | null): string | null {
  if (amounts === null || amounts.baseE9 === 0n) return null;
  const [usdc, base] = [amounts.usdcE9, amounts.baseE9].map((digits) => ({ digits, scale: DECIMALS }));
  return usdc && base ? formatDecimal(divide(usdc, base, PRECISION)) : null;
}

const showE9 = (amount: bigint): string => formatUnits(amount, DECIMALS);
/** USDC, to six decimals. */
export const showUsdc = (amountE9: bigint): string => formatUsdc(amountE9, DECIMALS);

/** The units of an answer's rates and base amounts. */
export const fxUnits = {
  rateUnit: z.string().meta({ description: 'The unit of every rate here: USDC for one whole base token' }),
  baseUnit: z.string().meta({ description: 'The unit of base amounts: whole base tokens' }),
};

export const unitsOf = (symbol: string) => ({ rateUnit: `USDC/${symbol}`, baseUnit: symbol });

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
