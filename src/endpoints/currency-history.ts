import { z } from 'zod';
import { integerParam } from '../catalogue/params.ts';
import { daysBefore } from '../lib/clock.ts';
import { type DatedFixing, type Fixing, rateChange } from '../upstream/rates/fixing.ts';
import { dateField, fixingSource } from './currency-fields.ts';
import type { Missing } from './missing-field.ts';
import { gatherParts } from './optional-parts.ts';
import { percentOf } from './percent-fields.ts';
import type { Sources } from './sources.ts';

/** The ECB keeps a file of its last 90 days, so a longer series would need its whole history. */
const MAX_DAYS = 90;
/** The longest gap between two fixings is five days, at Easter and Christmas. */
const LOOK_BACK_DAYS = 14;

export const daysParam = integerParam({
  min: 0,
  max: MAX_DAYS,
  default: 0,
  description: 'Calendar days of the series that ends with the fixing; 0: no series',
});

export const previousDateField = dateField.nullable().meta({
  description: 'Day of the fixing before that one; null for the first one, and when it cannot be read',
  format: 'date',
});

/** A series of the days' fixings, each with `shape` beside its date. */
export function seriesField<T extends z.ZodRawShape>(shape: T) {
  return z
    .array(z.strictObject({ date: z.string().meta({ description: 'Day of the fixing', format: 'date' }), ...shape }))
    .nullable()
    .meta({
      description: 'Every fixing of the last `days` days, oldest first; null when none were asked for, or read',
    });
}

/** What lies before a fixing. */
interface History {
  readonly previous: Fixing | null;
  /** Oldest first; null when no series was asked for, or it cannot be read. */
  readonly series: readonly Fixing[] | null;
  readonly missing: Missing;
  /** Of the fixing, then of its history. */
  readonly sources: ReturnType<typeof fixingSource>[];
}

/** Reads the fixing before a fixing, and the series of `days` days that ends with it: one read of a file that is kept. An answer does not fail for it. */
export async function readHistory(
  { currency }: Pick<Sources, 'currency'>,
  read: DatedFixing,
  days: number,
  signal: AbortSignal,
): Promise<History> {
  const { date } = read.fixing;
  const from = daysBefore(date, Math.max(days - 1, LOOK_BACK_DAYS));
  const { parts, missing } = await gatherParts({ history: () => currency.between(from, date) }, signal);
  const found = parts.history ?? null;
  const fields = ['previousDate', 'changePercent', ...(days > 0 ? ['series'] : [])];
  const first = daysBefore(date, days - 1);
  return {
    previous: found?.fixings.find((fixing) => fixing.date < date) ?? null,
    series: days > 0 && found ? found.fixings.filter((fixing) => fixing.date >= first).toReversed() : null,
    missing: missing.flatMap(({ reason }) => fields.map((field) => ({ field, reason }))),
    sources: [fixingSource(read), ...(found ? [fixingSource(found)] : [])],
  };
}

/** A rate's change since the fixing before, in percent; null without one, or where it lacks a currency. */
export function changeSince(previous: Fixing | null, now: Fixing, from: string, to: string): string | null {
  const change = previous && rateChange(previous, now, from, to);
  return change && percentOf(change.part, change.whole);
}
