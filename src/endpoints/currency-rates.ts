import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { formatDecimal } from '../lib/decimal.ts';
import { sourceSchema } from '../lib/source.ts';
import { crossRate, type Fixing, roundedRate } from '../upstream/rates/fixing.ts';
import { decimal } from './chain-fields.ts';
import {
  codeParam,
  codesParam,
  dateField,
  dateParam,
  fixingSource,
  NOTE,
  noteField,
  readFixing,
  requireQuoted,
} from './currency-fields.ts';
import type { Sources } from './sources.ts';

/** Reference rates of a day against a base. */
export const currencyRates = defineEndpoint({
  path: '/currency/rates',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Reference rates',
  summary:
    "The European Central Bank's daily reference rates against a base currency; a reference, not an executed price.",
  params: z.object({
    base: codeParam().prefault('USD').meta({ description: 'Currency that one unit is taken of', default: 'USD' }),
    symbols: codesParam().optional().meta({ description: 'Comma-separated currencies to quote; default: all' }),
    date: dateParam,
  }),
  result: z.strictObject({
    base: z.string(),
    date: dateField,
    rates: z.record(z.string(), decimal('Decimal text')).meta({
      description:
        'Units of each currency for one unit of the base: against EUR as published, otherwise with ten significant digits, rounded half up. The base itself is listed only when it is asked for',
    }),
    note: noteField,
    source: sourceSchema,
  }),
  example: {
    params: { base: 'USD', symbols: 'EUR,JPY', date: '2026-04-12' },
    result: {
      base: 'USD',
      date: '2026-04-10',
      rates: { EUR: '0.8538980446', JPY: '159.1922124' },
      note: NOTE,
      source: {
        name: 'European Central Bank',
        url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip',
        retrievedAt: 1795199401,
        licence: 'Reuse is free with the source named (ECB)',
      },
    },
  },
  async run({ base, symbols, date }, sources: Pick<Sources, 'clock' | 'currency'>) {
    const read = await readFixing(sources, date);
    const { fixing } = read;
    requireQuoted(fixing, [['base', base], ...(symbols ?? []).map((code) => ['symbols', code] as const)]);
    const quoted = symbols ?? [...fixing.rates.keys()].filter((code) => code !== base);
    return {
      base,
      date: fixing.date,
      rates: Object.fromEntries([...quoted].sort().map((code) => [code, rateOf(fixing, base, code)])),
      note: NOTE,
      source: fixingSource(read),
    };
  },
});

function rateOf(fixing: Fixing, base: string, code: string): string {
  const rate = crossRate(fixing, base, code);
  if (rate === null) throw new Error(`no rate for ${base} and ${code}, although both are quoted`);
  return formatDecimal(roundedRate(rate));
}
