import { z } from 'zod';

/** The members of an answer that are null or incomplete although the call succeeded. */
export const missingField = z
  .array(
    z.strictObject({
      field: z.string().meta({ description: 'The member that is null or incomplete' }),
      reason: z.string().meta({ description: 'What its source did, or why this service does not have it' }),
    }),
  )
  .meta({ description: 'Members that are null or incomplete, each with the reason; empty when there are none' });

export type Missing = z.output<typeof missingField>;

/** The entries whose condition holds. */
export function missingWhen(
  entries: readonly (readonly [isMissing: boolean, field: string, reason: string])[],
): Missing {
  return entries.flatMap(([isMissing, field, reason]) => (isMissing ? [{ field, reason }] : []));
}
