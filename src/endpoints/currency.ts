import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { BadParameter } from '../errors.ts';
import { daysBefore, isCalendarDate, weekdaysBetween } from '../lib/clock.ts';
import { sourceSchema } from '../lib/service.ts';
import { divide, formatDecimal, multiply, parseDecimal } from '../lib/units.ts';
import {
  crossRate,
  type DatedFixing,
  FIRST_FIXING,
  type Fixing,
  type FixingSource,
  frankfurtDate,
  rateChange,
  roundedRate,
} from '../upstream/rates/fixing.ts';
import { field, gatherParts, type Missing, missingField, percentOf, readFrom } from './fields.ts';
import type { Sources } from './sources.ts';

// The ECB's reference rates of a day: all of them against a base, or one amount converted. An answer does not fail for
// the change or the series, which need days before. `missing` says when the fixing is older than a holiday explains.

type Read = Pick<Sources, 'clock'> & { readonly currency: FixingSource };

const CODE = /^[A-Za-z]{3}$/;
const CODE_FORM = 'a three-letter currency code such as EUR';

/** A currency code in any letter case. Whether the day's rates quote it is checked later. */
const codeParam = z
  .string({ error: `required: ${CODE_FORM}` })
  .regex(CODE, CODE_FORM)
  .transform((text) => text.toUpperCase());

const CODES_FORM = 'comma-separated three-letter currency codes';

const codesParam = z
  .string()
  .max(300, CODES_FORM)
  .transform((text) => [...new Set(text.split(',').map((part) => part.trim().toUpperCase()))])
  .refine((codes) => codes.every((code) => CODE.test(code)), CODES_FORM);

const dateParam = z
  .string()
  .refine(isCalendarDate, 'a date that exists, as YYYY-MM-DD')
  .refine((date) => date >= FIRST_FIXING, `not before ${FIRST_FIXING}, the first fixing`)
  .optional()
  .meta({ description: `Day of the rates, from ${FIRST_FIXING} to today; default: the latest`, format: 'date' });

/** The ECB keeps a file of its last 90 days. A longer series would need its whole history. */
const MAX_DAYS = 90;

const daysParam = integerParam({
  min: 0,
  max: MAX_DAYS,
  default: 0,
  description: 'Calendar days of the series that ends with the fixing; 0: no series',
});

const dateField = z.string().meta({
  description:
    'Day of the fixing: the last one on or before the day asked for; `missing` says so when it is more than four ' +
    'working days older',
  format: 'date',
});

const previousDateField = dateField.nullable().meta({
  description: 'Day of the fixing before that one; null for the first one, and when it cannot be read',
  format: 'date',
});

function seriesField<T extends z.ZodRawShape>(shape: T) {
  return z
    .array(z.strictObject({ date: z.string().meta({ description: 'Day of the fixing', format: 'date' }), ...shape }))
    .nullable()
    .meta({
      description: 'Every fixing of the last `days` days, oldest first; null when none were asked for, or read',
    });
}

const NOTE =
  'Euro foreign exchange reference rates, published by the ECB on working days for information only; a reference, ' +
  'not an executed price. Rates between two other currencies are computed from their euro rates.';

/** How both answers end. */
const closingFields = {
  note: field.text('What the figures are, and are not'),
  missing: missingField,
  source: sourceSchema,
  sources: z.array(sourceSchema).meta({ description: '`source`, then that of the fixings before' }),
};

const LICENCE = 'Reuse is free with the source named (ECB)';

const EXAMPLE_SOURCE = {
  name: 'European Central Bank',
  url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip',
  retrievedAt: 1795199401,
  licence: LICENCE,
};

export const currencyRates = defineEndpoint({
  path: '/currency/rates',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Reference rates',
  summary:
    "The European Central Bank's daily reference rates against a base currency, their change against the day before, " +
    'and a series of up to 90 days; a reference, not an executed price.',
  notFor: 'rates within a day, cryptocurrencies, or prices that a bank or card gives',
  tags: 'exchange rates, forex, ECB, euro, dollar, yen, pound, franc, historical, past date',
  ofChain: false,
  params: z.object({
    base: codeParam.prefault('USD').meta({ description: 'Currency that one unit is taken of', default: 'USD' }),
    symbols: codesParam.optional().meta({ description: 'Comma-separated currencies to quote; default: all' }),
    date: dateParam,
    days: daysParam,
  }),
  result: z.strictObject({
    base: z.string(),
    date: dateField,
    rates: z.record(z.string(), field.decimal('Decimal text')).meta({
      description:
        'Units of each currency for one unit of the base: against EUR as published, otherwise with ten significant ' +
        'digits, rounded half up. The base itself is listed only when it is asked for',
    }),
    previousDate: previousDateField,
    changePercent: z
      .record(z.string(), field.percent('Change against the fixing before').nullable())
      .meta({ description: 'Of each rate; null where the fixing before lacks a currency, or cannot be read' }),
    series: seriesField({
      rates: z.record(z.string(), field.decimal('Decimal text')).meta({
        description: 'As `rates`; currencies that were not quoted that day are left out',
      }),
    }),
    ...closingFields,
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
  async run({ base, symbols, date, days }, sources: Read, signal) {
    const read = await readFixing(sources, date);
    const { fixing } = read;
    requireQuoted(fixing, [['base', base], ...(symbols ?? []).map((code) => ['symbols', code] as const)]);
    const quoted = (symbols ?? [...fixing.rates.keys()].filter((code) => code !== base)).sort();
    const { previous, series, closing } = await readHistory(sources, read, { date, days }, signal);
    return {
      base,
      date: fixing.date,
      rates: ratesOf(fixing, base, quoted),
      previousDate: previous?.date ?? null,
      changePercent: Object.fromEntries(quoted.map((code) => [code, changeSince(previous, fixing, base, code)])),
      series: series?.map((one) => ({ date: one.date, rates: ratesOf(one, base, quoted) })) ?? null,
      ...closing,
    };
  },
});

function ratesOf(fixing: Fixing, base: string, codes: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    codes.flatMap((code) => {
      const rate = crossRate(fixing, base, code);
      return rate === null ? [] : [[code, formatDecimal(roundedRate(rate))]];
    }),
  );
}

const AMOUNT_FORM = 'a decimal number with at most 18 digits before and 8 after the point, without sign or exponent';

/** A hundredth of a cent; six significant digits for a small amount of a weak currency. */
const RESULT_PRECISION = { decimals: 4, significant: 6 };

const amount = z
  .string({ error: `required: ${AMOUNT_FORM}` })
  .regex(/^\d{1,18}(\.\d{1,8})?$/, AMOUNT_FORM)
  // 007.50 becomes 7.5.
  .transform((text) => formatDecimal(parseDecimal(text) ?? { digits: 0n, scale: 0 }))
  .meta({ description: 'Amount to convert, as a decimal string' });

const EXAMPLE_CONVERT_SOURCE = {
  ...EXAMPLE_SOURCE,
  url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml',
};

export const currencyConvert = defineEndpoint({
  path: '/currency/convert',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Currency conversion',
  summary:
    "An amount converted at the European Central Bank's reference rate, the rate's change against the day before, " +
    'and a series of up to 90 days; a reference, not an executed price.',
  notFor: 'moving money, cryptocurrencies, or prices that a bank or card gives',
  tags: 'currency converter, money exchange calculator, euro, dollar, yen, pound, franc',
  ofChain: false,
  params: z.object({
    from: codeParam.meta({ description: 'Currency of the amount' }),
    to: codeParam.meta({ description: 'Currency of the result' }),
    amount,
    date: dateParam,
    days: daysParam,
  }),
  result: z.strictObject({
    from: z.string(),
    to: z.string(),
    amount: field.decimal('The amount, without needless zeros'),
    rate: field.decimal('Units of `to` for one unit of `from`, with ten significant digits, rounded half up'),
    result: field.decimal(
      'The amount times the exact rate (not the rounded one shown), rounded half up to four decimals, or to six ' +
        'significant digits where that is finer',
    ),
    date: dateField,
    previousDate: previousDateField,
    changePercent: field.orNull(
      'null where that fixing lacks a currency, or cannot be read',
      field.percent('Change of the rate against the fixing before'),
    ),
    series: seriesField({ rate: field.decimal('As `rate`, on that day') }),
    ...closingFields,
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
      source: EXAMPLE_CONVERT_SOURCE,
      sources: [
        EXAMPLE_CONVERT_SOURCE,
        { ...EXAMPLE_CONVERT_SOURCE, url: 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist-90d.xml' },
      ],
    },
  },
  async run({ from, to, amount, date, days }, sources: Read, signal) {
    const read = await readFixing(sources, date);
    const { fixing } = read;
    requireQuoted(fixing, Object.entries({ from, to }));
    const rate = crossRate(fixing, from, to);
    const given = parseDecimal(amount);
    if (rate === null || given === null) throw new Error(`no rate for ${from} and ${to}, although both are quoted`);
    const { previous, series, closing } = await readHistory(sources, read, { date, days }, signal);
    const result = divide(multiply(given, rate.dividend), rate.divisor, RESULT_PRECISION);
    return {
      from,
      to,
      amount,
      rate: formatDecimal(roundedRate(rate)),
      result: formatDecimal(result),
      date: fixing.date,
      previousDate: previous?.date ?? null,
      changePercent: changeSince(previous, fixing, from, to),
      series: series?.flatMap((one) => rateOn(one, from, to)) ?? null,
      ...closing,
    };
  },
});

/** Null where the day lacks a currency. */
function rateOn(fixing: Fixing, from: string, to: string) {
  const rate = crossRate(fixing, from, to);
  return rate === null ? [] : [{ date: fixing.date, rate: formatDecimal(roundedRate(rate)) }];
}

/** The fixing that applies to a day. Throws BadParameter for a day that has not begun in Frankfurt. */
async function readFixing({ clock, currency }: Read, date: string | undefined) {
  const today = frankfurtDate(clock.nowMs());
  if (date !== undefined && date > today) {
    throw new BadParameter([{ path: 'date', message: `in the future; today is ${today} in Frankfurt` }]);
  }
  return await currency.at(date ?? null);
}

/** Throws BadParameter that names the currencies without a rate, and lists those that have one. */
function requireQuoted({ date, rates }: Fixing, asked: readonly (readonly [string, string])[]): void {
  const list = [...rates.keys()].sort().join(', ');
  const errors = asked
    .filter(([, code]) => !rates.has(code))
    .map(([path, code]) => ({ path, message: `${code} has no reference rate of ${date}; there are ${list}` }));
  if (errors.length > 0) throw new BadParameter(errors);
}

/** The longest gap between fixings is five days, at Easter and Christmas. */
const LOOK_BACK_DAYS = 14;

/** Reads what lies before a fixing, by one read of a file that is kept. `missing` has it when that fails. */
async function readHistory(
  sources: Read,
  read: DatedFixing,
  { date: asked, days }: { date: string | undefined; days: number },
  signal: AbortSignal,
) {
  const { date } = read.fixing;
  const from = daysBefore(date, Math.max(days - 1, LOOK_BACK_DAYS));
  const { parts, missing } = await gatherParts({ history: () => sources.currency.between(from, date) }, signal);
  const found = parts.history;
  const fields = ['previousDate', 'changePercent', ...(days > 0 ? ['series'] : [])];
  const first = daysBefore(date, days - 1);
  const source = fixingSource(read);
  return {
    previous: found?.fixings.find((fixing) => fixing.date < date) ?? null,
    /** Oldest first; null when none was asked for, or it cannot be read. */
    series: days > 0 && found ? found.fixings.filter((fixing) => fixing.date >= first).toReversed() : null,
    closing: {
      note: NOTE,
      missing: [
        ...lateFixing(sources, read.fixing, asked),
        ...missing.flatMap(({ reason }) => fields.map((field) => ({ field, reason }))),
      ],
      source,
      sources: found ? [source, fixingSource(found)] : [source],
    },
  };
}

/** A rate's change in percent; null where the fixing before lacks a currency. */
function changeSince(previous: Fixing | null, now: Fixing, from: string, to: string): string | null {
  const change = previous && rateChange(previous, now, from, to);
  return change && percentOf(change.part, change.whole);
}

/** The ECB pauses at most two working days (Easter and Christmas, TARGET holidays). */
const LATE_WEEKDAYS = 4;

function lateFixing({ clock }: Pick<Sources, 'clock'>, { date }: Fixing, asked: string | undefined): Missing {
  const day = asked ?? frankfurtDate(clock.nowMs());
  const weekdays = weekdaysBetween(date, day);
  if (weekdays <= LATE_WEEKDAYS) return [];
  const reason =
    `the newest fixing up to ${day} that the source gives is of ${date}, ${weekdays} working days before: it may ` +
    'lack later ones';
  return [{ field: 'date', reason }];
}

function fixingSource({ source, ...read }: Omit<DatedFixing, 'fixing'>) {
  return { name: source, ...readFrom(read), licence: LICENCE };
}
