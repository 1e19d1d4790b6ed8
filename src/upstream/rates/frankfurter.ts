import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { isCalendarDate } from '../../lib/clock.ts';
import type { Upstream } from '../client/http.ts';
import { type Fixing, type FixingSource, isRate } from './fixing.ts';

const code = z.string().regex(/^[A-Z]{3}$/);

/** JSON numbers of a few digits, so their shortest text is the text that was sent. */
const rates = z.record(code, z.number().transform(String).refine(isRate));

/** Version 1 is frozen and has the ECB's rates only. Weak currencies lose digits in it, so it is the second choice. */
const answerSchema = z.object({
  amount: z.literal(1),
  base: code,
  date: z.string().refine(isCalendarDate),
  rates,
});

/** The answer for a span of days. */
const spanSchema = z.object({
  amount: z.literal(1),
  base: code,
  rates: z.record(z.string().refine(isCalendarDate), rates),
});

const PUBLISHER = 'European Central Bank, through Frankfurter';

/** The ECB's rates as Frankfurter serves them, per euro. `baseUrl` ends with the version. */
export function createFrankfurter(upstream: Upstream, baseUrl: string): FixingSource {
  return {
    async at(date) {
      const url = `${baseUrl}/${date ?? 'latest'}?base=EUR`;
      const answer = await upstream.jsonDated({ url }, answerSchema);
      if (answer === null) throw new UpstreamFailed(upstream.name, `has no fixing for ${date ?? 'today'}`);
      const { data, retrievedAtMs } = answer;
      if (date !== null && data.date > date) throw new UpstreamFailed(upstream.name, 'answered for a later day');
      return { fixing: fixingOf(data.date, data.base, data.rates), source: PUBLISHER, url, retrievedAtMs };
    },

    async between(from, to) {
      const url = `${baseUrl}/${from}..${to}?base=EUR`;
      const answer = await upstream.jsonDated({ url }, spanSchema);
      if (answer === null) throw new UpstreamFailed(upstream.name, `has no fixings from ${from} to ${to}`);
      const { data, retrievedAtMs } = answer;
      // It may begin with the last fixing before the span.
      const days = Object.entries(data.rates).filter(([day]) => day >= from && day <= to);
      const fixings = days.sort(([a], [b]) => (a < b ? 1 : -1)).map(([day, ofDay]) => fixingOf(day, data.base, ofDay));
      return { fixings, source: PUBLISHER, url, retrievedAtMs };
    },
  };
}

function fixingOf(date: string, base: string, rates: Record<string, string>): Fixing {
  return { date, rates: new Map([[base, '1'], ...Object.entries(rates)]) };
}
