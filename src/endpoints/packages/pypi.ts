import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { NotFound } from '../../errors.ts';
import { sourceSchema } from '../../lib/service.ts';
import { normalisePypiName } from '../../upstream/packages/ecosystems.ts';
import type { OsvAnswer } from '../../upstream/packages/osv.ts';
import { MAX_FILES, type PypiAdvisory } from '../../upstream/packages/pypi.ts';
import type { PackageSources } from '../../upstream/packages.ts';
import { field, gatherParts, missingField } from '../fields.ts';
import {
  advisoryUrl,
  dependentsField,
  packageNameParam,
  partSources,
  projectUrlsField,
  releaseAdvisory,
  shownAdvisories,
  sourcesField,
  whereRead,
} from './fields.ts';

// PyPI's record and advisories, then OSV's severities, dependents and an attestation, each of which may be missing.

const count = z.int().nonnegative();

/** A requirement (PEP 508) in its parts. */
const dependencyField = z.strictObject({
  name: z.string(),
  extras: z.array(z.string()).meta({ description: 'Extras asked of the dependency, as in requests[socks]' }),
  specifier: field.textOrNull('PEP 440 version specifier; null: any version'),
  extra: field.textOrNull('Needed only when this extra of the package is asked for; null: always'),
  marker: field.textOrNull('PEP 508 condition beside the extra; null: none'),
});

const LICENCE = 'Advisories: CC BY 4.0 (PyPA, GitHub), by OSV.dev';

const EXAMPLE_SOURCE = {
  name: 'PyPI',
  url: 'https://pypi.org/pypi/jinja2/json',
  retrievedAt: 1795199401,
  licence: LICENCE,
};

export const packagesPypi = defineEndpoint({
  path: '/packages/pypi',
  access: 'paid',
  priceUsd: '0.002',
  label: 'PyPI package',
  summary:
    'Latest release of a PyPI project: Python requirement, licence, dependencies, advisories with severity, ' +
    'dependents, files and provenance.',
  notFor: 'old versions or source code',
  tags: 'python library, python version, pip install, module',
  ofChain: false,
  params: z.object({ name: packageNameParam('pypi', 'The project, in any of its spellings (PEP 503)') }),
  result: z.strictObject({
    name: field.text('As the project spells it'),
    version: field.text("PyPI's latest: a prerelease or yanked one only where there is no other"),
    publishedAt: field.orNull('null when it has no files', field.at('When its first file was uploaded')),
    requiresPython: field.textOrNull('PEP 440 specifier; null: not stated'),
    licence: field.textOrNull(
      'SPDX expression where given (PEP 639), else the short licence text, else the classifiers',
    ),
    dependencies: field.orNull(
      'null: the metadata names none. PyPI does not distinguish none from unknown',
      z.array(dependencyField),
    ),
    yanked: field.boolean('true: withdrawn by its author, not to be installed anew'),
    advisories: z.array(releaseAdvisory).meta({
      description:
        'Known vulnerabilities of exactly this release: those that PyPI lists, and those that OSV has beside them. ' +
        'Withdrawn ones are left out',
    }),
    advisoryCount: field.count('How many there are'),
    summary: field.textOrNull('One line of the author'),
    homepage: field.textOrNull('As the author wrote it'),
    projectUrls: projectUrlsField,
    files: field.list(`Files of this release, the source distribution first, at most ${MAX_FILES}`, {
      filename: z.string(),
      kind: field.text('sdist, bdist_wheel or an older kind'),
      sizeBytes: count,
      sha256: z.string().nullable(),
    }),
    fileCount: count,
    totalSizeBytes: field.count('Of all its files together'),
    provenance: field.objectOrNull(
      "PyPI's attestation of who published it (PEP 740), not verified here; null: it has none, or see `missing`",
      {
        filename: field.text('The file that was looked up: the first of `files`'),
        publishers: field.list('Trusted publishers that PyPI attests', {
          kind: field.text('For example GitHub or GitLab'),
          repository: z.string().nullable(),
          workflow: z.string().nullable(),
        }),
        url: field.text('The attestation, for a verifier'),
      },
    ),
    dependents: dependentsField,
    missing: missingField,
    source: sourceSchema,
    sources: sourcesField,
  }),
  example: {
    params: { name: 'jinja2' },
    result: {
      name: 'Jinja2',
      version: '3.1.5',
      publishedAt: 1734797504,
      requiresPython: '>=3.7',
      licence: 'BSD License',
      dependencies: [
        { name: 'MarkupSafe', extras: [], specifier: '>=2.0', extra: null, marker: null },
        { name: 'Babel', extras: [], specifier: '>=2.7', extra: 'i18n', marker: null },
      ],
      yanked: false,
      advisories: [
        {
          id: 'GHSA-cpwx-vrp4-4pq7',
          aliases: ['CVE-2025-27516', 'PYSEC-2026-1471'],
          summary: 'Jinja2 vulnerable to sandbox breakout through attr filter selecting format method',
          severity: {
            label: 'medium',
            score: 5.4,
            vector: 'CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:P/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N',
          },
          fixedIn: ['3.1.6'],
          malicious: false,
          url: 'https://osv.dev/vulnerability/GHSA-cpwx-vrp4-4pq7',
        },
      ],
      advisoryCount: 1,
      summary: 'A very fast and expressive template engine.',
      homepage: null,
      projectUrls: [{ label: 'Source', url: 'https://github.com/pallets/jinja/' }],
      files: [
        {
          filename: 'jinja2-3.1.5.tar.gz',
          kind: 'sdist',
          sizeBytes: 244674,
          sha256: '8fefff8dc3034e27bb80d67c671eb8a9bc424c0ef4c0826edbff304cceff43bb',
        },
        {
          filename: 'jinja2-3.1.5-py3-none-any.whl',
          kind: 'bdist_wheel',
          sizeBytes: 134596,
          sha256: 'aba0f4dc9ed8013c424088f68a5c226f7d6097ed89b246d7749c2ec4175c6adb',
        },
      ],
      fileCount: 2,
      totalSizeBytes: 379270,
      provenance: {
        filename: 'jinja2-3.1.5.tar.gz',
        publishers: [{ kind: 'GitHub', repository: 'pallets/jinja', workflow: 'publish.yaml' }],
        url: 'https://pypi.org/integrity/jinja2/3.1.5/jinja2-3.1.5.tar.gz/provenance',
      },
      dependents: { direct: 9120, indirect: 31877, total: 40997 },
      missing: [],
      source: EXAMPLE_SOURCE,
      sources: [EXAMPLE_SOURCE],
    },
  },
  async run({ name: asked }, { packages }: { packages: PackageSources }, signal) {
    const found = await packages.pypi.latest(asked, signal);
    if (!found) throw new NotFound(`PyPI has no project ${asked}`);
    const { url, retrievedAtMs, ...release } = found;
    const { version } = release;
    const [file] = release.files;
    const name = normalisePypiName(asked) ?? asked;
    const { parts, missing } = await gatherParts(
      {
        'advisories[].severity': (within) => packages.osv.advisories({ ecosystem: 'pypi', name, version }, within),
        dependents: (within) => packages.dependents('pypi', name, version, within),
        provenance: async (within) => (file ? packages.pypiProvenance(name, version, file.filename, within) : null),
      },
      signal,
    );
    const osv = parts['advisories[].severity'];
    const advisories = withSeverity(release.advisories, osv);
    const source = { name: 'PyPI', ...whereRead({ url, retrievedAtMs }), licence: LICENCE };
    return {
      ...release,
      advisories,
      advisoryCount: advisories.length,
      provenance: parts.provenance,
      dependents: parts.dependents?.data ?? null,
      missing,
      source,
      sources: [source, ...partSources(osv, parts.dependents)],
    };
  },
});

type Shown = z.output<typeof releaseAdvisory>;

const UNKNOWN = { label: null, score: null, vector: null };

/** PyPI copies OSV's list, so one may be ahead. Without OSV's answer every severity is unknown. */
function withSeverity(listed: readonly PypiAdvisory[], osv: OsvAnswer | null): Shown[] {
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
