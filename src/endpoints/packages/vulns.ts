import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { BadParameter, NotFound, type ParameterError } from '../../errors.ts';
import { sourceSchema } from '../../lib/service.ts';
import { ECOSYSTEMS, type EcosystemName } from '../../upstream/packages/ecosystems.ts';
import { MAX_VERSIONS, type OsvQuestion } from '../../upstream/packages/osv.ts';
import type { PackageSources } from '../../upstream/packages.ts';
import { field } from '../fields.ts';
import {
  advisoryNames,
  advisoryUrl,
  advisoryUrlField,
  maliciousField,
  OSV_LICENCE,
  severityField,
  whereRead,
} from './fields.ts';

// The known vulnerabilities of a package, or of one version. The registry says whether it lists them; OSV is asked
// under its spelling. What neither knows is a 404: "no advisories" for it would be a false all-clear.

const NAMES = Object.keys(ECOSYSTEMS) as [EcosystemName, ...EcosystemName[]];

const affected = field.list(
  'Ranges of affected versions; for one version those that hold it. Empty where the database lists single versions',
  {
    introduced: field.textOrNull('The first affected version; null: from the first one on'),
    fixed: field.textOrNull('The version that ends the range, not affected itself; null: no fix is known on this line'),
    lastAffected: field.textOrNull('The last affected version, where the database states that instead of a fix'),
  },
);

const advisory = z.strictObject({
  ...advisoryNames,
  severity: severityField,
  affected,
  affectedVersions: z.array(z.string()).meta({
    description:
      `Affected versions that the database lists one by one, at most ${MAX_VERSIONS}; for one version that one, if ` +
      'it is listed',
  }),
  fixedIn: z.array(z.string()).meta({
    description:
      'Ascending; for one version those that fix it, on its own line where that has a fix. Empty: none is known',
  }),
  malicious: maliciousField,
  publishedAt: field.at('First publication').nullable(),
  modifiedAt: field.at('Last change').nullable(),
  url: advisoryUrlField,
});

const params = z.object({
  name: z.string({ error: 'required: the package name' }).min(1, 'required: the package name').meta({
    description:
      'As its ecosystem spells it: group:artifact for maven, vendor/name for packagist, the module path for go',
  }),
  ecosystem: z
    .string()
    .transform((name) => name.toLowerCase())
    .pipe(z.enum(NAMES, `one of ${NAMES.join(', ')}`))
    .default('npm')
    .meta({ description: 'Where the package lives; letter case does not matter', enum: NAMES, default: 'npm' }),
  version: z.string().optional().meta({
    description: 'One exact version, no range and no tag. Without it every published version is covered',
  }),
});

export const packagesVulns = defineEndpoint({
  path: '/packages/vulns',
  access: 'paid',
  priceUsd: '0.004',
  label: 'Package vulnerabilities',
  summary:
    'Advisories for a package or one version of it, with severity, affected and fixing versions, in eight ' +
    'ecosystems. What does not exist is 404.',
  notFor: 'scanning code or lock files, or for whole dependency trees',
  tags:
    'CVE lookup, security holes, vulnerability, exploit, malware, dependency audit, ' +
    'npm, pypi, go, rust, maven, rubygems, nuget, packagist',
  ofChain: false,
  params: params.check(({ value, issues }) => {
    for (const { path, message } of readQuestion(value).errors) {
      issues.push({ code: 'custom', path: [path], message, input: value });
    }
  }),
  result: z.strictObject({
    ecosystem: z.enum(NAMES),
    name: field.text('In the spelling under which advisories are filed'),
    version: field.textOrNull('null: every published version'),
    known: field.booleanOrNull(
      'true: the registry lists the package (and the version, where one is given), or an advisory names it; what ' +
        'neither has is 404. null: no registry lists it, as with releases of the Go language itself',
    ),
    listed: field.booleanOrNull(
      'Whether the registry lists it now; false: it was removed, as malicious packages are. null: as known',
    ),
    count: field.count('How many advisories there are'),
    advisories: z.array(advisory).meta({
      description:
        'Each vulnerability once, newest first; withdrawn ones are left out. Ids that begin with MAL- mark malicious ' +
        'packages',
    }),
    source: sourceSchema,
  }),
  example: {
    params: { name: 'lodash', version: '4.17.20' },
    result: {
      ecosystem: 'npm',
      name: 'lodash',
      version: '4.17.20',
      known: true,
      listed: true,
      count: 1,
      advisories: [
        {
          id: 'GHSA-35jh-r3h4-6jhm',
          aliases: ['CVE-2021-23337'],
          summary: 'Command Injection in lodash',
          severity: { label: 'high', score: 7.2, vector: 'CVSS:3.1/AV:N/AC:L/PR:H/UI:N/S:U/C:H/I:H/A:H' },
          affected: [{ introduced: null, fixed: '4.17.21', lastAffected: null }],
          affectedVersions: [],
          fixedIn: ['4.17.21'],
          malicious: false,
          publishedAt: 1620317151,
          modifiedAt: 1644356143,
          url: advisoryUrl('GHSA-35jh-r3h4-6jhm'),
        },
      ],
      source: {
        name: 'OSV.dev',
        url: 'https://api.osv.dev/v1/query',
        retrievedAt: 1795199401,
        licence: OSV_LICENCE,
      },
    },
  },
  async run(asked, { packages }: { packages: PackageSources }, signal) {
    const { question, errors } = readQuestion(asked);
    if (!question) throw new BadParameter(errors);
    const listing = await packages.findListing(question, signal);
    const named = listing.state === 'listed' ? { ...question, name: listing.name } : question;
    const { advisories, isNamed, url, retrievedAtMs } = await packages.osv.advisories(named, signal);
    if (listing.state === 'missing' && !isNamed) throw missing(named);
    return {
      ...named,
      known: listing.state === 'unregistered' && !isNamed ? null : true,
      listed: listing.state === 'unregistered' ? null : listing.state === 'listed',
      count: advisories.length,
      advisories: advisories.map((one) => ({ ...one, url: advisoryUrl(one.id) })),
      source: { name: 'OSV.dev', ...whereRead({ url, retrievedAtMs }), licence: OSV_LICENCE },
    };
  },
});

function missing({ ecosystem, name, version }: OsvQuestion): NotFound {
  return new NotFound(
    version === null
      ? `${ecosystem} has no package ${name}`
      : `${ecosystem} has no version ${version} of ${name}, or no such package`,
  );
}

/** The rules depend on the ecosystem, another parameter. */
function readQuestion({ name, ecosystem, version }: z.output<typeof params>) {
  const rules = ECOSYSTEMS[ecosystem];
  const errors: ParameterError[] = [];
  const normal = rules.name(name);
  if (normal === null) errors.push({ path: 'name', message: rules.nameForm });
  const exact = version === undefined ? null : rules.version(version);
  if (version !== undefined && exact === null) errors.push({ path: 'version', message: rules.versionForm });
  return {
    question: normal === null || errors.length > 0 ? null : { ecosystem, name: normal, version: exact },
    errors,
  };
}
