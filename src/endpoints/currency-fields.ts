import { z } from 'zod';
import { BadParameter } from '../errors.ts';
import { isCalendarDate, weekdaysBetween } from '../lib/clock.ts';
import { type DatedFixing, FIRST_FIXING, type Fixing, frankfurtDate } from '../upstream/rates/fixing.ts';
import type { Missing } from './missing-field.ts';
import type { Sources } from './sources.ts';

const CODE = /^[A-Za-z]{3}$/;
const CODE_FORM = 'a three-letter currency code such as EUR';

/** A currency code in the query, in any letter case. The endpoint checks later whether the day's rates quote it. */
export function codeParam() {
  return z
    .string({ error: `required: ${CODE_FORM}` })
    .regex(CODE, CODE_FORM)
    .transform((text) => text.toUpperCase());
}

/** Comma-separated codes in the query. */
export function codesParam() {
  const form = 'comma-separated three-letter currency codes';
  return z
    .string()
    .max(300, form)
    .transform((text) => [...new Set(text.split(',').map((part) => part.trim().toUpperCase()))])
    .refine((codes) => codes.every((code) => CODE.test(code)), form);
}

export const dateParam = z
  .string()
  .refine(isCalendarDate, 'a date that exists, as YYYY-MM-DD')
  .refine((date) => date >= FIRST_FIXING, `not before ${FIRST_FIXING}, the first fixing`)
  .optional()
  .meta({ description: `Day of the rates, from ${FIRST_FIXING} to today; default: the latest`, format: 'date' });

export const dateField = z.string().meta({
  description:
    'Day of the fixing: the last one on or before the day asked for; `missing` says so when it is more than four working days older',
  format: 'date',
});

export const noteField = z.string().meta({ description: 'What the figures are, and are not' });

/** Part of every answer: these are reference rates, and no trade executes at them. */
export const NOTE =
  'Euro foreign exchange reference rates, published by the ECB on working days for information only; a reference, not an executed price. Rates between two other currencies are computed from their euro rates.';

/** The fixing that applies to a day. Throws BadParameter for a day that is still in the future in Frankfurt. */
export async function readFixing({ clock, currency }: Pick<Sources, 'clock' | 'currency'>, date: string | undefined) {
  const today = frankfurtDate(clock.nowMs());
  if (date !== undefined && date > today) {
    throw new BadParameter([{ path: 'date', message: `in the future; today is ${today} in Frankfurt` }]);
  }
  return await currency.at(date ?? null);
}

/** The ECB pauses two working days at most, at Easter and at Christmas (its calendar of TARGET holidays). */
const LATE_WEEKDAYS = 4;

/** Says that a fixing is more than four working days older than the day asked for, or than today in Frankfurt where none was asked for. */
export function lateFixing({ clock }: Pick<Sources, 'clock'>, { date }: Fixing, asked: string | undefined): Missing {
  const day = asked ?? frankfurtDate(clock.nowMs());
  const weekdays = weekdaysBetween(date, day);
  if (weekdays <= LATE_WEEKDAYS) return [];
  const reason = `the newest fixing up to ${day} that the source gives is of ${date}, ${weekdays} working days before: it may lack later ones`;
  return [{ field: 'date', reason }];
}

/** Throws BadParameter that names each currency without a rate on that day, and lists the currencies that have one. */
export function requireQuoted({ date, rates }: Fixing, asked: readonly (readonly [string, string])[]): void {
  const list = [...rates.keys()].sort().join(', ');
  const errors = asked
    .filter(([, code]) => !rates.has(code))
    .map(([path, code]) => ({ path, message: `${code} has no reference rate of ${date}; there are ${list}` }));
  if (errors.length > 0) throw new BadParameter(errors);
}

/** The `source` member of an answer about rates. */
export function fixingSource({ source, url, retrievedAtMs }: Omit<DatedFixing, 'fixing'>) {
  const licence = 'Reuse is free with the source named (ECB)';
  return { name: source, url, retrievedAt: Math.floor(retrievedAtMs / 1000), licence };
}
