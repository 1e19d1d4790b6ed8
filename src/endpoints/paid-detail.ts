import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';

/** Where a free summary's detail is sold. */
export const detailField = z
  .strictObject({
    path: z.string().meta({ description: 'The priced route; the same is sold in bitcoin below /v1/lightning' }),
    priceUsd: z.string().meta({ description: 'What a call of it costs' }),
    adds: z.string().meta({ description: 'What it says beyond this answer' }),
  })
  .meta({ description: 'The priced detail of this free summary' });

/** The link to a priced endpoint. Its path and price are read from its own declaration. Throws for a free endpoint. */
export function paidDetail<S>({ path, price }: Endpoint<S>, adds: string): z.output<typeof detailField> {
  if (price === null) throw new Error(`${path} is free`);
  return { path: `/v1/paid${path}`, priceUsd: price.usd, adds };
}
