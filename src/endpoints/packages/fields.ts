import { z } from 'zod';
import { type Source, sourceSchema } from '../../lib/service.ts';
import type { Retrieved } from '../../upstream/client/client.ts';
import { ECOSYSTEMS, type EcosystemName } from '../../upstream/packages/ecosystems.ts';
import { type OsvAnswer, SEVERITY_LABELS } from '../../upstream/packages/osv.ts';
import type { Dependents } from '../../upstream/packages.ts';
import { field, readFrom } from '../fields.ts';

/** It is checked by its ecosystem's rules before any source is asked, and parsed to its canonical spelling. */
export function packageNameParam(ecosystem: EcosystemName, description: string) {
  const { nameForm, name } = ECOSYSTEMS[ecosystem];
  return z
    .string({ error: `required: ${nameForm}` })
    .transform((text, context) => {
      const normal = name(text);
      if (normal !== null) return normal;
      context.addIssue(nameForm);
      return z.NEVER;
    })
    .meta({ description });
}

export function rangesField(description: string) {
  return z.record(z.string(), z.string()).meta({ description });
}

export const projectUrlsField = field.list('Web pages that its author names, at most 20', {
  label: z.string(),
  url: z.string(),
});

export const dependentsField = field.objectOrNull(
  'Public packages that depend on this version, counted by deps.dev; an indication. null: it knows none, or not ' +
    'this version yet, or see `missing`',
  {
    direct: field.count('That name it themselves'),
    indirect: field.count('That need it through another package'),
    total: z.int().nonnegative(),
  },
);

/** More than any release of use has. */
const MAX_ADVISORIES = 100;

export const advisoryCountField = field.countOrNull(
  `How many advisories there are; at most ${MAX_ADVISORIES} are listed. null: unknown`,
);

export const advisoryNames = {
  id: field.text("GitHub's id where there is one, else the CVE number, else another database's"),
  aliases: z.array(z.string()).meta({
    description: 'All other ids of the same vulnerability, which is listed once even when several databases have it',
  }),
  summary: field.textOrNull('null when no database gives one'),
};

export const severityField = z.strictObject({
  label: field.orNull(
    "As the publishing database says (GitHub's moderate is medium), else by the score; null: unknown",
    z.enum(SEVERITY_LABELS),
  ),
  score: field.orNull(
    'Of the vector: the base score of CVSS v3, the one score of v4; null: no usable vector',
    z.number().min(0).max(10),
  ),
  vector: field.textOrNull('CVSS v4 where there is one, else v3'),
});

export const maliciousField = field.boolean('The package was made to harm: remove it; no version of it is safe');

export const advisoryUrlField = field.text('Page with text and references');

export const releaseAdvisory = z.strictObject({
  ...advisoryNames,
  severity: severityField,
  fixedIn: z.array(z.string()).meta({ description: 'Ascending; empty: no fixed version is known' }),
  malicious: maliciousField,
  url: advisoryUrlField,
});

/** Newest first. */
export function shownAdvisories({ advisories }: OsvAnswer) {
  return advisories.slice(0, MAX_ADVISORIES).map(({ id, aliases, summary, severity, fixedIn, malicious }) => {
    return { id, aliases, summary, severity, fixedIn, malicious, url: advisoryUrl(id) };
  });
}

export function advisoryUrl(id: string): string {
  return `https://osv.dev/vulnerability/${encodeURIComponent(id)}`;
}

/** The licence of OSV's records, by their home databases. */
export const OSV_LICENCE = 'CC BY 4.0 (GitHub, PyPA, Go), CC0 (RustSec), Apache-2.0 (malicious packages)';

export const sourcesField = z
  .array(sourceSchema)
  .meta({ description: 'Everything that was read for this answer: `source` first, then those of its parts' });

export function partSources(osv: OsvAnswer | null, dependents: Dependents | null): Source[] {
  return [
    ...(osv ? [{ name: 'OSV.dev', licence: OSV_LICENCE, ...whereRead(osv) }] : []),
    ...(dependents ? [{ name: 'deps.dev', licence: 'CC BY 4.0 (deps.dev)', ...whereRead(dependents) }] : []),
  ];
}

/** As `readFrom`, and without the query of a configured base URL. */
export function whereRead({ url, retrievedAtMs }: Retrieved) {
  const { origin, pathname } = new URL(url);
  return readFrom({ url: `${origin}${pathname}`, retrievedAtMs });
}
