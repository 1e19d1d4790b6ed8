import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { NotFound } from '../../errors.ts';
import { sourceSchema } from '../../lib/service.ts';
import type { PackageSources } from '../../upstream/packages.ts';
import { field, gatherParts, missingField } from '../fields.ts';
import {
  advisoryCountField,
  dependentsField,
  OSV_LICENCE,
  packageNameParam,
  partSources,
  projectUrlsField,
  rangesField,
  releaseAdvisory,
  shownAdvisories,
  sourcesField,
  whereRead,
} from './fields.ts';

// The registry's record, then downloads, advisories and dependents, each of which may be missing.

const EXAMPLE_SOURCE = { name: 'npm registry', url: 'https://registry.example/express', retrievedAt: 1795199401 };

export const packagesNpm = defineEndpoint({
  path: '/packages/npm',
  access: 'paid',
  priceUsd: '0.002',
  label: 'npm package',
  summary:
    'Latest version of an npm package: date, licence, downloads, dependencies, deprecation, advisories with ' +
    'severity, dependents, size and provenance.',
  notFor: 'old versions, advisories against them, or source code',
  tags: 'javascript library, node module, typescript, package manager',
  ofChain: false,
  params: z.object({ name: packageNameParam('npm', 'The package, scoped or not; letter case matters') }),
  result: z.strictObject({
    name: z.string(),
    version: field.text("What the registry's `latest` tag points at; may be a prerelease"),
    publishedAt: field.at('When that version was published').nullable(),
    licence: field.textOrNull(
      'SPDX expression where the author wrote one; alternatives of old packages are joined with OR',
    ),
    weeklyDownloads: field.countOrNull(
      'Over the last seven days that npm has counted; null when its downloads API counts none, or see `missing`',
    ),
    dependencies: rangesField('What it needs at run time'),
    peerDependencies: rangesField('What it expects its user to install'),
    engines: field.orNull('null: it states none', rangesField('Versions of node and others that it states')),
    deprecated: field.textOrNull('The message with which the version was deprecated; null: it is not'),
    description: field.textOrNull('One line of the author'),
    homepage: field.textOrNull('As the author wrote it'),
    repository: field.textOrNull('Address of the source code, as the author wrote it'),
    projectUrls: projectUrlsField,
    unpackedSizeBytes: field.countOrNull('Of all its files; null: not measured'),
    fileCount: z.int().nonnegative().nullable(),
    integrity: field.textOrNull('Subresource Integrity of the tarball'),
    provenance: field.objectOrNull(
      "The registry's attestation of how this version was built, not verified here; null: it has none",
      {
        predicateType: field.text('What is attested, for example SLSA provenance'),
        url: field.text('The attestation, for a verifier'),
      },
    ),
    advisories: field.orNull(
      'Known vulnerabilities of exactly this version, newest first; null: see `missing`',
      z.array(releaseAdvisory),
    ),
    advisoryCount: advisoryCountField,
    dependents: dependentsField,
    missing: missingField,
    source: sourceSchema,
    sources: sourcesField,
  }),
  example: {
    params: { name: 'express' },
    result: {
      name: 'express',
      version: '5.1.0',
      publishedAt: 1743454800,
      licence: 'MIT',
      weeklyDownloads: 161638384,
      dependencies: { accepts: '^2.0.0', 'body-parser': '^2.2.0' },
      peerDependencies: {},
      engines: { node: '>= 18' },
      deprecated: null,
      description: 'Fast, unopinionated, minimalist web framework',
      homepage: 'https://expressjs.com/',
      repository: 'https://github.com/expressjs/express.git',
      projectUrls: [
        { label: 'homepage', url: 'https://expressjs.com/' },
        { label: 'repository', url: 'https://github.com/expressjs/express' },
      ],
      unpackedSizeBytes: 197056,
      fileCount: 11,
      integrity: 'sha512-DT9ck5YIRU+8GYzzU5kT3eHGA5iL+1Zd0EutOmTE9Dtk+Tvuzd23VBU+ec7HPNSTxXYO55gPV/hq4pSBJDjFpA==',
      provenance: null,
      advisories: [],
      advisoryCount: 0,
      dependents: { direct: 48211, indirect: 29690, total: 77901 },
      missing: [],
      source: EXAMPLE_SOURCE,
      sources: [
        EXAMPLE_SOURCE,
        { name: 'OSV.dev', licence: OSV_LICENCE, url: 'https://api.osv.dev/v1/query', retrievedAt: 1795199401 },
      ],
    },
  },
  async run({ name }, { packages }: { packages: PackageSources }, signal) {
    const found = await packages.npm.latest(name, signal);
    if (!found) throw new NotFound(`npm has no package ${name}`);
    const { url, retrievedAtMs, ...release } = found;
    const { version } = release;
    const { parts, missing } = await gatherParts(
      {
        weeklyDownloads: (within) => packages.npmDownloads(name, within),
        advisories: (within) => packages.osv.advisories({ ecosystem: 'npm', name, version }, within),
        dependents: (within) => packages.dependents('npm', name, version, within),
      },
      signal,
    );
    const source = { name: 'npm registry', ...whereRead({ url, retrievedAtMs }) };
    return {
      ...release,
      weeklyDownloads: parts.weeklyDownloads,
      advisories: parts.advisories && shownAdvisories(parts.advisories),
      advisoryCount: parts.advisories?.advisories.length ?? null,
      dependents: parts.dependents?.data ?? null,
      missing,
      source,
      sources: [source, ...partSources(parts.advisories, parts.dependents)],
    };
  },
});
