import { z } from 'zod';
import { parseHostName } from '../lib/url.ts';

/**
 * A host name in the query; internationalised names (IDN) are allowed. It is parsed to its ASCII form, so that equal requests have equal parameters.
 */
export function hostNameParam(description: string, { underscores }: { underscores: boolean }) {
  return z
    .string({ error: 'required: a host name such as example.com' })
    .max(1000, 'longer than 1000 characters')
    .transform((text, context) => {
      const parsed = parseHostName(text);
      if ('name' in parsed && (underscores || !parsed.name.includes('_'))) return parsed.name;
      const message = 'fault' in parsed ? parsed.fault : 'registrable names have no underscores';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .meta({ description });
}
