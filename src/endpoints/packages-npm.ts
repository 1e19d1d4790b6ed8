import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import { authorText, packageNameParam, rangesField, shownUrl } from './packages-fields.ts';
import type { Sources } from './sources.ts';

const result = z.strictObject({
  name: z.string(),
  version: z.string().meta({ description: "What the registry's `latest` tag points at; may be a prerelease" }),
  publishedAt: atField('When that version was published').nullable(),
  licence: z.string().nullable().meta({
    description: 'SPDX expression where the author wrote one; alternatives of old packages are joined with OR',
  }),
  weeklyDownloads: z.int().nonnegative().nullable().meta({
    description: 'Over the last seven days that npm has counted; null when its downloads API does not answer',
  }),
  dependencies: rangesField('What it needs at run time'),
  peerDependencies: rangesField('What it expects its user to install'),
  engines: rangesField('Versions of node and others that it states')
    .nullable()
    .meta({ description: 'null: it states none' }),
  deprecated: authorText('The message with which the version was deprecated; null: it is not'),
  description: authorText('One line of the author'),
  homepage: authorText('As the author wrote it'),
  repository: authorText('Address of the source code, as the author wrote it'),
  source: sourceSchema,
});

/** The current state of one npm package. */
export const packagesNpm = defineEndpoint({
  path: '/packages/npm',
  access: 'paid',
  priceUsd: '0.002',
  label: 'npm package',
  summary:
    'Latest version of an npm package: publish date, licence, weekly downloads, dependencies, engines and deprecation.',
  params: z.object({ name: packageNameParam('npm', 'The package, scoped or not; letter case matters') }),
  result,
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
      source: { name: 'npm registry', url: 'https://registry.example/express', retrievedAt: 1795199401 },
    },
  },
  async run({ name }, { packages }: Pick<Sources, 'packages'>, signal) {
    const [found, weeklyDownloads] = await Promise.all([
      packages.npm.latest(name, signal),
      packages.npmDownloads(name, signal),
    ]);
    if (!found) throw new NotFound(`npm has no package ${name}`);
    const { url, retrievedAtMs, ...release } = found;
    const source = { name: 'npm registry', url: shownUrl(url), retrievedAt: Math.floor(retrievedAtMs / 1000) };
    return { ...release, weeklyDownloads, source };
  },
});
