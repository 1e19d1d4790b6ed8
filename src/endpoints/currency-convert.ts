import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { divide, formatDecimal, multiply, parseDecimal } from '../lib/units.ts';
import { crossRate, type Fixing, roundedRate } from '../upstream/rates/fixing.ts';
import { decimal } from './chain-fields.ts';
import {
  codeParam,
  dateField,
  dateParam,
  fixingSource,
  lateFixing,
  NOTE,
  noteField,
  readFixing,
  requireQuoted,
} from './currency-fields.ts';
import { changeSince, daysParam, previousDateField, readHistory, seriesField } from './currency-history.ts';
import { missingField } from './missing-field.ts';
import { percentField } from './percent-fields.ts';
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

const EXAMPLE_SOURCE = {
  name: 'European Central Bank',
  url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
  retrievedAt: 1795199401,
  licence: 'Reuse is free with the source named (ECB)',
};

/** Converts an amount at the reference rate of a day. */
export const currencyConvert = defineEndpoint({
  path: '/currency/convert',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Currency conversion',
  summary:
    "An amount converted at the European Central Bank's reference rate, the rate's change against the day before, and a series of up to 90 days; a reference, not an executed price.",
  params: z.object({
    from: codeParam().meta({ description: 'Currency of the amount' }),
    to: codeParam().meta({ description: 'Currency of the result' }),
    amount,
    date: dateParam,
    days: daysParam,
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
    previousDate: previousDateField,
    changePercent: percentField('Change of the rate against the fixing before')
      .nullable()
      .describe('null where that fixing lacks a currency, or cannot be read'),
    series: seriesField({ rate: decimal('As `rate`, on that day') }),
    note: noteField,
    missing: missingField,
    source: sourceSchema,
    sources: z.array(sourceSchema).meta({ description: '`source`, then that of the fixings before' }),
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
      previousDate: '2026-04-10',
      changePercent: '-0.2305',
      series: null,
      note: NOTE,
      missing: [],
      source: EXAMPLE_SOURCE,
      sources: [
        EXAMPLE_SOURCE,
        { ...EXAMPLE_SOURCE, url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist-90d.xml' },
      ],
    },
  },
  async run({ from, to, amount, date, days }, sources: Pick<Sources, 'clock' | 'currency'>, signal) {
    const read = await readFixing(sources, date);
    const asked = [
      ['from', from],
      ['to', to],
    ] as const;
    requireQuoted(read.fixing, asked);
    const rate = crossRate(read.fixing, from, to);
    const given = parseDecimal(amount);
    if (rate === null || given === null) throw new Error(`no rate for ${from} and ${to}, although both are quoted`);
    const { previous, series, missing, sources: readFrom } = await readHistory(sources, read, days, signal);
    const result = divide(multiply(given, rate.dividend), rate.divisor, RESULT_PRECISION);
    return {
      from,
      to,
      amount,
      rate: formatDecimal(roundedRate(rate)),
      result: formatDecimal(result),
      date: read.fixing.date,
      previousDate: previous?.date ?? null,
      changePercent: changeSince(previous, read.fixing, from, to),
      series: series?.flatMap((one) => rateOn(one, from, to)) ?? null,
      note: NOTE,
      missing: [...lateFixing(sources, read.fixing, date), ...missing],
      source: fixingSource(read),
      sources: readFrom,
    };
  },
});

/** The rate of a day; none where the day lacks a currency. */
function rateOn(fixing: Fixing, from: string, to: string) {
  const rate = crossRate(fixing, from, to);
  return rate === null ? [] : [{ date: fixing.date, rate: formatDecimal(roundedRate(rate)) }];
}
