import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { isCalendarDate } from '../../lib/calendar.ts';
import type { Upstream } from '../client/http.ts';
import { type FixingSource, isRate } from './fixing.ts';

const code = z.string().regex(/^[A-Z]{3}$/);

/** Version 1 is frozen and has the ECB's rates only. Weak currencies lose digits in it, so it is the second choice. */
const answerSchema = z.object({
  amount: z.literal(1),
  base: code,
  date: z.string().refine(isCalendarDate),
  // JSON numbers of a few digits, so their shortest text is the text that was sent.
  rates: z.record(code, z.number().transform(String).refine(isRate)),
});

/** The ECB's rates as Frankfurter serves them, per euro. `baseUrl` ends with the version. */
export function createFrankfurter(upstream: Upstream, baseUrl: string): FixingSource {
  return {
    async at(date) {
      const url = `${baseUrl}/${date ?? 'latest'}?base=EUR`;
      const answer = await upstream.jsonDated({ url }, answerSchema);
      if (answer === null) throw new UpstreamFailed(upstream.name, `has no fixing for ${date ?? 'today'}`);
      const { data, retrievedAtMs } = answer;
      if (date !== null && data.date > date) throw new UpstreamFailed(upstream.name, 'answered for a later day');
      const rates = new Map([[data.base, '1'], ...Object.entries(data.rates)]);
      return {
        fixing: { date: data.date, rates },
        source: 'European Central Bank, through Frankfurter',
        url,
        retrievedAtMs,
      };
    },
  };
}
