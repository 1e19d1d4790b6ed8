import type { z } from 'zod';
import type { OsvAnswer } from '../upstream/packages/osv.ts';
import type { PypiAdvisory } from '../upstream/packages/pypi.ts';
import { advisoryUrl, type releaseAdvisory } from './advisory-fields.ts';
import { shownAdvisories } from './packages-fields.ts';

type Shown = z.output<typeof releaseAdvisory>;

const UNKNOWN = { label: null, score: null, vector: null };

/**
 * PyPI's advisories with the severity that OSV has for them, then those that OSV alone has. PyPI copies its list from OSV, so one may be ahead of the
 * other. Without OSV's answer every severity is unknown.
 */
export function withSeverity(listed: readonly PypiAdvisory[], osv: OsvAnswer | null): Shown[] {
  const known = osv ? shownAdvisories(osv) : [];
  const matched = new Set<Shown>();
  const shown = listed.map((advisory) => {
    const names = new Set([advisory.id, ...advisory.aliases]);
    const same = known.find((one) => [one.id, ...one.aliases].some((name) => names.has(name)));
    if (same) matched.add(same);
    return {
      ...advisory,
      summary: advisory.summary ?? same?.summary ?? null,
      severity: same?.severity ?? UNKNOWN,
      malicious: same?.malicious ?? advisory.id.startsWith('MAL-'),
      url: advisoryUrl(advisory.id),
    };
  });
  return [...shown, ...known.filter((one) => !matched.has(one))];
}
