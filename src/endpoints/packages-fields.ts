import { z } from 'zod';
import { ECOSYSTEMS, type EcosystemName } from '../upstream/packages/ecosystems.ts';

/** A package name in the query, checked by its ecosystem's rules before anybody is asked, and parsed to its one spelling. */
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

/** Version ranges by package name. */
export function rangesField(description: string) {
  return z.record(z.string(), z.string()).meta({ description });
}

/** Free text of a package's author; never proof of anything. */
export function authorText(description: string) {
  return z.string().nullable().meta({ description });
}

/** Shared by PyPI's and OSV's advisories. */
export const advisoryNames = {
  id: z.string().meta({ description: "GitHub's id where there is one, else the CVE number, else another database's" }),
  aliases: z
    .array(z.string())
    .meta({ description: 'All other ids of the same flaw: it is told once, whoever reports it' }),
  summary: z.string().nullable().meta({ description: 'null when no database gives one' }),
};

/** A URL that may be shown: credentials and queries of a configured base stay out. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
