import { z } from 'zod';

const event = z.object({
  introduced: z.string().optional(),
  fixed: z.string().optional(),
  last_affected: z.string().optional(),
});

const severity = z.object({ type: z.string(), score: z.string() });

const affected = z.object({
  package: z.object({ ecosystem: z.string(), name: z.string() }).optional(),
  ranges: z.array(z.object({ type: z.string(), events: z.array(event) })).default([]),
  severity: z.array(severity).default([]),
});

/**
 * What we read of an OSV record (https://ossf.github.io/osv-schema/, 1.7.5). Times are text that is parsed later and `database_specific` has
 * no shape of its own, because one odd record must not keep the other advisories of a package from being told.
 */
export const recordSchema = z.object({
  id: z.string(),
  aliases: z.array(z.string()).default([]),
  summary: z.string().optional(),
  published: z.unknown().optional(),
  modified: z.unknown().optional(),
  withdrawn: z.string().optional(),
  severity: z.array(severity).default([]),
  affected: z.array(affected).default([]),
  database_specific: z.unknown().optional(),
});

export type OsvRecord = z.output<typeof recordSchema>;
export type OsvEvent = z.output<typeof event>;
