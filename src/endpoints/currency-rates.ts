import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatDecimal } from '../lib/units.ts';
import { crossRate, type Fixing, roundedRate } from '../upstream/rates/fixing.ts';
import { decimal } from './chain-fields.ts';
import {
  codeParam,
  codesParam,
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

const EXAMPLE_SOURCE = {
  name: 'European Central Bank',
  url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip',
  retrievedAt: 1795199401,
  licence: 'Reuse is free with the source named (ECB)',
};

/** Reference rates of a day against a base. */
export const currencyRates = defineEndpoint({
  path: '/currency/rates',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Reference rates',
  summary:
    "The European Central Bank's daily reference rates against a base currency, their change against the day before, and a series of up to 90 days; a reference, not an executed price.",
  params: z.object({
    base: codeParam().prefault('USD').meta({ description: 'Currency that one unit is taken of', default: 'USD' }),
    symbols: codesParam().optional().meta({ description: 'Comma-separated currencies to quote; default: all' }),
    date: dateParam,
    days: daysParam,
  }),
  result: z.strictObject({
    base: z.string(),
    date: dateField,
    rates: z.record(z.string(), decimal('Decimal text')).meta({
      description:
        'Units of each currency for one unit of the base: against EUR as published, otherwise with ten significant digits, rounded half up. The base itself is listed only when it is asked for',
    }),
    previousDate: previousDateField,
    changePercent: z
      .record(z.string(), percentField('Change against the fixing before').nullable())
      .meta({ description: 'Of each rate; null where the fixing before lacks a currency, or cannot be read' }),
    series: seriesField({
      rates: z.record(z.string(), decimal('Decimal text')).meta({
        description: 'As `rates`; currencies that were not quoted that day are left out',
      }),
    }),
    note: noteField,
    missing: missingField,
    source: sourceSchema,
    sources: z.array(sourceSchema).meta({ description: '`source`, then that of the fixings before' }),
  }),
  example: {
    params: { base: 'USD', symbols: 'EUR,JPY', date: '2026-04-12', days: '4' },
    result: {
      base: 'USD',
      date: '2026-04-10',
      rates: { EUR: '0.8538980446', JPY: '159.1922124' },
      previousDate: '2026-04-09',
      changePercent: { EUR: '-0.1281', JPY: '0.0942' },
      series: [
        { date: '2026-04-09', rates: { EUR: '0.8549935021', JPY: '159.0424075' } },
        { date: '2026-04-10', rates: { EUR: '0.8538980446', JPY: '159.1922124' } },
      ],
      note: NOTE,
      missing: [],
      source: EXAMPLE_SOURCE,
      sources: [EXAMPLE_SOURCE, EXAMPLE_SOURCE],
    },
  },
  async run({ base, symbols, date, days }, sources: Pick<Sources, 'clock' | 'currency'>, signal) {
    const read = await readFixing(sources, date);
    const { fixing } = read;
    requireQuoted(fixing, [['base', base], ...(symbols ?? []).map((code) => ['symbols', code] as const)]);
    const quoted = (symbols ?? [...fixing.rates.keys()].filter((code) => code !== base)).sort();
    const { previous, series, missing, sources: readFrom } = await readHistory(sources, read, days, signal);
    return {
      base,
      date: fixing.date,
      rates: ratesOf(fixing, base, quoted),
      previousDate: previous?.date ?? null,
      changePercent: Object.fromEntries(quoted.map((code) => [code, changeSince(previous, fixing, base, code)])),
      series: series?.map((one) => ({ date: one.date, rates: ratesOf(one, base, quoted) })) ?? null,
      note: NOTE,
      missing: [...lateFixing(sources, fixing, date), ...missing],
      source: fixingSource(read),
      sources: readFrom,
    };
  },
});

/** The rates that the day quotes. */
function ratesOf(fixing: Fixing, base: string, codes: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    codes.flatMap((code) => {
      const rate = crossRate(fixing, base, code);
      return rate === null ? [] : [[code, formatDecimal(roundedRate(rate))]];
    }),
  );
}
