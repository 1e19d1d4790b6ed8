import { z } from 'zod';

/** The sources of entries, the most trusted first. The earlier source wins ties and duplicates. */
export const SOURCES = ['own', 'market', 'catalogue'] as const;
export type Source = (typeof SOURCES)[number];

const priceUsd = z.string().regex(/^\d+(\.\d+)?$/);
const method = z.enum(['GET', 'POST']);

const param = z.strictObject({
  name: z.string(),
  in: z.enum(['path', 'query', 'body', 'header']).meta({ description: '`body`: a field of the JSON body of a POST' }),
  type: z.string().meta({ description: 'JSON Schema’s word; `any` when the seller says none' }),
  description: z.string(),
  required: z.boolean(),
  example: z.json().meta({ description: 'null when the seller gives none' }),
});

/** One payable route in a search's answer, with the members that `GET /v1/market/search` promises. Sellers' text is untrusted. */
export const entrySchema = z.strictObject({
  url: z.string().meta({ description: 'A {placeholder} in it must be replaced' }),
  method,
  priceUsd: priceUsd.meta({ description: 'What the seller asked when last seen' }),
  name: z.string().meta({ description: 'The seller’s own name of the route' }),
  label: z.string().meta({ description: 'A short name for people' }),
  description: z.string(),
  params: z.array(param),
  payTo: z.string().meta({ description: 'Address of the seller' }),
  host: z.string(),
  network: z.string().meta({ description: 'CAIP-2; where it is paid here' }),
  rail: z.enum(['direct', 'gateway', 'channel']).meta({
    description: '`gateway`: the buyer needs a gateway deposit; `channel`: a payment channel',
  }),
  direct: z
    .strictObject({ url: z.string(), priceUsd })
    .nullable()
    .meta({ description: 'How a gateway entry can also be paid plainly on the chain; null when it cannot' }),
  body: z.json().meta({ description: 'An example of the JSON body of a POST; else null' }),
  source: z.enum(SOURCES),
  category: z.string(),
  site: z.string().meta({ description: 'The seller’s web site' }),
  networks: z.array(z.string()).meta({ description: 'All networks that the seller accepts' }),
  plainNetworks: z.array(z.string()).meta({ description: 'Those payable without the gateway' }),
  online: z.boolean().meta({
    description:
      'own: the service is ready; market: by the last hourly calls; catalogue: it is listed there, and was not called',
  }),
  score: z.number().meta({ description: 'Relevance; only comparable within one answer, 0 without a query' }),
});

/** A search’s entry. */
export type Entry = z.output<typeof entrySchema>;

/** An entry as its source stores it. A search adds its relevance and whether it is online now. */
export type ListedEntry = Omit<Entry, 'score' | 'online'>;

/** An entry and the text by which searches find it. */
export interface Listing {
  readonly entry: ListedEntry;
  /** Tags and the names of the answer's members, as plain words. Searched but not shown. */
  readonly keywords: string;
}

/** The schema of a stored listing. The catalogue's stored copy is checked against it when it is read. */
export const listingSchema = z.object({
  entry: entrySchema.omit({ score: true, online: true }),
  keywords: z.string(),
});
