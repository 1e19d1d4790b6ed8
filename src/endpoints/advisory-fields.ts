import { z } from 'zod';
import { SEVERITY_LABELS } from '../upstream/packages/osv.ts';

/** OSV's page of one advisory, with its text and references. */
const PAGE = 'https://osv.dev/vulnerability/';

/** Licence of OSV's records, by their home databases. */
export const OSV_LICENCE = 'CC BY 4.0 (GitHub, PyPA, Go), CC0 (RustSec), Apache-2.0 (malicious packages)';

/** Members that all advisories share. */
export const advisoryNames = {
  id: z.string().meta({ description: "GitHub's id where there is one, else the CVE number, else another database's" }),
  aliases: z.array(z.string()).meta({
    description: 'All other ids of the same vulnerability, which is listed once even when several databases have it',
  }),
  summary: z.string().nullable().meta({ description: 'null when no database gives one' }),
};

/** How bad a vulnerability is. */
export const severityField = z.strictObject({
  label: z.enum(SEVERITY_LABELS).nullable().meta({
    description: "As the publishing database says (GitHub's moderate is medium), else by the score; null: unknown",
  }),
  score: z.number().min(0).max(10).nullable().meta({
    description: 'Of the vector: the base score of CVSS v3, the one score of v4; null: no usable vector',
  }),
  vector: z.string().nullable().meta({ description: 'CVSS v4 where there is one, else v3' }),
});

export const maliciousField = z
  .boolean()
  .meta({ description: 'The package was made to harm: remove it; no version of it is safe' });

export const advisoryUrlField = z.string().meta({ description: 'Page with text and references' });

/** An advisory against the one release that an answer is about. */
export const releaseAdvisory = z.strictObject({
  ...advisoryNames,
  severity: severityField,
  fixedIn: z.array(z.string()).meta({ description: 'Ascending; empty: no fixed version is known' }),
  malicious: maliciousField,
  url: advisoryUrlField,
});

/** The page of an advisory. */
export function advisoryUrl(id: string): string {
  return `${PAGE}${encodeURIComponent(id)}`;
}
