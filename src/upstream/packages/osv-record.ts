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
  // A list that cannot be read is no list: the ranges beside it say more.
  versions: z.array(z.string()).catch([]),
  severity: z.array(severity).default([]),
});

/**
 * The fields of an OSV record that we read (https://ossf.github.io/osv-schema/, 1.7.5). Times are parsed later and `database_specific` is not
 * checked, so that one odd record does not hide the other advisories of a package.
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
