import { z } from 'zod';
import { integerParam } from '../catalogue/params.ts';
import { parseDecimal } from '../lib/units.ts';
import { SOURCES } from './entry.ts';

/** Characters of a query, as Unicode code points. */
const MAX_QUERY = 200;
const MAX_DECIMAL = 30;

const text = (max: number, message: string) =>
  z
    .string()
    .trim()
    .min(1, message)
    .refine((value) => value.length <= max, message);

/** The parameters of a search. Each is checked strictly. Unknown parameters are ignored. */
export const searchParams = z.object({
  q: z
    .string()
    .refine((value) => [...value].length <= MAX_QUERY, `at most ${MAX_QUERY} characters`)
    .default(''),
  maxPriceUsd: z
    .string()
    .refine((value) => value.length <= MAX_DECIMAL && parseDecimal(value) !== null, 'a decimal number such as 0.01')
    .optional(),
  limit: integerParam({ min: 1, max: 50, default: 10, description: 'How many entries at most' }),
  offset: integerParam({ min: 0, max: 100_000, default: 0, description: 'How many to leave out first' }),
  source: z.enum(SOURCES, `one of ${SOURCES.join(', ')}`).optional(),
  seller: text(253, 'an address (0x and 40 hex digits) or a host name').optional(),
  category: text(60, 'a category, at most 60 characters').optional(),
  network: text(80, 'a network such as eip155:5042').optional(),
});

/** The parsed parameters of a search. */
export type SearchParams = z.output<typeof searchParams>;
