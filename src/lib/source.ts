import { z } from 'zod';

/** The source of an answer. Every data answer has one, so that a buyer can check the data at its origin. */
export const sourceSchema = z
  .strictObject({
    name: z.string().meta({ description: 'The origin of the data, in words' }),
    url: z.string().meta({ description: 'Where it was read; of chain answers scheme and host only' }),
    retrievedAt: z.int().meta({ description: 'Unix seconds at which it was read' }),
    licence: z.string().optional().meta({ description: 'Licence of the content, where it has one' }),
  })
  .meta({ description: 'Where the answer comes from' });

/** A source as an answer names it. */
export type Source = z.output<typeof sourceSchema>;
