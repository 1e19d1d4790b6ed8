import { z } from 'zod';
import { ECOSYSTEMS, type EcosystemName } from '../upstream/packages/ecosystems.ts';

/** A package name in the query. It is checked by its ecosystem's rules before any source is asked, and parsed to its canonical spelling. */
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

/** Free text that a package's author wrote. It proves nothing. */
export function authorText(description: string) {
  return z.string().nullable().meta({ description });
}

/** Members that PyPI's and OSV's advisories share. */
export const advisoryNames = {
  id: z.string().meta({ description: "GitHub's id where there is one, else the CVE number, else another database's" }),
  aliases: z.array(z.string()).meta({
    description: 'All other ids of the same vulnerability, which is listed once even when several databases have it',
  }),
  summary: z.string().nullable().meta({ description: 'null when no database gives one' }),
};

/** The URL as answers show it, without the credentials and query of a configured base URL. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
