import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { divide, formatDecimal, multiply, parseDecimal } from '../lib/decimal.ts';
import { sourceSchema } from '../lib/source.ts';
import { crossRate, roundedRate } from '../upstream/rates/fixing.ts';
import { decimal } from './chain-fields.ts';
import {
  codeParam,
  dateField,
  dateParam,
  fixingSource,
  NOTE,
  noteField,
  readFixing,
  requireQuoted,
} from './currency-fields.ts';
import type { Sources } from './sources.ts';

const AMOUNT_FORM = 'a decimal number with at most 18 digits before and 8 after the point, without sign or exponent';

/** A hundredth of a cent. A small amount of a weak currency keeps six significant digits instead. */
const RESULT_PRECISION = { decimals: 4, significant: 6 };

const amount = z
  .string({ error: `required: ${AMOUNT_FORM}` })
  .regex(/^\d{1,18}(\.\d{1,8})?$/, AMOUNT_FORM)
  // Normalises the amount: 007.50 becomes 7.5.
  .transform((text) => formatDecimal(parseDecimal(text) ?? { digits: 0n, scale: 0 }))
  .meta({ description: 'Amount to convert, as a decimal string' });

/** Converts an amount at the reference rate of a day. */
export const currencyConvert = defineEndpoint({
  path: '/currency/convert',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Currency conversion',
  summary: "An amount converted at the European Central Bank's reference rate; a reference, not an executed price.",
  params: z.object({
    from: codeParam().meta({ description: 'Currency of the amount' }),
    to: codeParam().meta({ description: 'Currency of the result' }),
    amount,
    date: dateParam,
  }),
  result: z.strictObject({
    from: z.string(),
    to: z.string(),
    amount: decimal('The amount, without needless zeros'),
    rate: decimal('Units of `to` for one unit of `from`, with ten significant digits, rounded half up'),
    result: decimal(
      'The amount times the exact rate (not the rounded one shown), rounded half up to four decimals, or to six significant digits where that is finer',
    ),
    date: dateField,
    note: noteField,
    source: sourceSchema,
  }),
  example: {
    params: { from: 'EUR', to: 'USD', amount: '99.95' },
    result: {
      from: 'EUR',
      to: 'USD',
      amount: '99.95',
      rate: '1.1684',
      result: '116.7816',
      date: '2026-04-13',
      note: NOTE,
      source: {
        name: 'European Central Bank',
        url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
        retrievedAt: 1795199401,
        licence: 'Reuse is free with the source named (ECB)',
      },
    },
  },
  async run({ from, to, amount, date }, sources: Pick<Sources, 'clock' | 'currency'>) {
    const read = await readFixing(sources, date);
    const asked = [
      ['from', from],
      ['to', to],
    ] as const;
    requireQuoted(read.fixing, asked);
    const rate = crossRate(read.fixing, from, to);
    const given = parseDecimal(amount);
    if (rate === null || given === null) throw new Error(`no rate for ${from} and ${to}, although both are quoted`);
    const result = divide(multiply(given, rate.dividend), rate.divisor, RESULT_PRECISION);
    return {
      from,
      to,
      amount,
      rate: formatDecimal(roundedRate(rate)),
      result: formatDecimal(result),
      date: read.fixing.date,
      note: NOTE,
      source: fixingSource(read),
    };
  },
});
