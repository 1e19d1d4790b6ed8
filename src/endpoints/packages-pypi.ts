import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import { advisoryNames, authorText, packageNameParam, shownUrl } from './packages-fields.ts';
import type { Sources } from './sources.ts';

const dependency = z.strictObject({
  name: z.string(),
  extras: z.array(z.string()).meta({ description: 'Extras asked of the dependency, as in requests[socks]' }),
  specifier: z.string().nullable().meta({ description: 'PEP 440 version specifier; null: any version' }),
  extra: z
    .string()
    .nullable()
    .meta({ description: 'Needed only when this extra of the package is asked for; null: always' }),
  marker: z.string().nullable().meta({ description: 'PEP 508 condition beside the extra; null: none' }),
});

const result = z.strictObject({
  name: z.string().meta({ description: 'As the project spells it' }),
  version: z.string().meta({ description: "PyPI's latest: a prerelease or yanked one only where there is no other" }),
  publishedAt: atField('When its first file was uploaded')
    .nullable()
    .meta({ description: 'null when it has no files' }),
  requiresPython: z.string().nullable().meta({ description: 'PEP 440 specifier; null: not stated' }),
  licence: z.string().nullable().meta({
    description: 'SPDX expression where given (PEP 639), else the short licence text, else the classifiers',
  }),
  dependencies: z.array(dependency).nullable().meta({
    description: 'null: the metadata names none. PyPI does not distinguish none from unknown',
  }),
  yanked: z.boolean().meta({ description: 'true: withdrawn by its author, not to be installed anew' }),
  advisories: z
    .array(
      z.strictObject({
        ...advisoryNames,
        fixedIn: z.array(z.string()).meta({ description: 'Ascending; empty: no fixed version is known' }),
      }),
    )
    .meta({ description: 'Known vulnerabilities of exactly this release; withdrawn advisories are left out' }),
  summary: authorText('One line of the author'),
  homepage: authorText('As the author wrote it'),
  source: sourceSchema,
});

/** The current state of one PyPI project. */
export const packagesPypi = defineEndpoint({
  path: '/packages/pypi',
  access: 'paid',
  priceUsd: '0.002',
  label: 'PyPI package',
  summary:
    'Latest version of a PyPI project: Python requirement, licence, dependencies and advisories against that release.',
  params: z.object({ name: packageNameParam('pypi', 'The project, in any of its spellings (PEP 503)') }),
  result,
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
          fixedIn: ['3.1.6'],
        },
      ],
      summary: 'A very fast and expressive template engine.',
      homepage: null,
      source: {
        name: 'PyPI',
        url: 'https://pypi.org/pypi/jinja2/json',
        retrievedAt: 1795199401,
        licence: 'Advisories: CC BY 4.0 (PyPA, GitHub), by OSV.dev',
      },
    },
  },
  async run({ name }, { packages }: Pick<Sources, 'packages'>, signal) {
    const found = await packages.pypi.latest(name, signal);
    if (!found) throw new NotFound(`PyPI has no project ${name}`);
    const { url, retrievedAtMs, ...release } = found;
    const source = {
      name: 'PyPI',
      url: shownUrl(url),
      retrievedAt: Math.floor(retrievedAtMs / 1000),
      licence: 'Advisories: CC BY 4.0 (PyPA, GitHub), by OSV.dev',
    };
    return { ...release, source };
  },
});
