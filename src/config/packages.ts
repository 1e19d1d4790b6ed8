import { z } from 'zod';

/** The sources of package data: base URLs without a trailing slash. */
export interface PackagesConfig {
  /** null: the default of npm's own client. */
  readonly npmUrl: string | null;
  readonly npmDownloadsUrl: string;
  readonly depsDevUrl: string;
  readonly pypiUrl: string;
  readonly osvUrl: string;
  readonly nugetUrl: string;
  readonly packagistUrl: string;
}

const baseUrl = z
  .url({ protocol: /^https?$/, error: 'an http or https URL' })
  .transform((url) => url.replace(/\/+$/, ''));

/** The keys of the environment, for the schema in config.ts. */
export const packagesEnvironment = {
  UPSTREAM_NPM_URL: baseUrl.optional(),
  UPSTREAM_NPM_DOWNLOADS_URL: baseUrl.default('https://api.npmjs.org'),
  UPSTREAM_DEPS_DEV_URL: baseUrl.default('https://api.deps.dev'),
  UPSTREAM_PYPI_URL: baseUrl.default('https://pypi.org'),
  UPSTREAM_OSV_URL: baseUrl.default('https://api.osv.dev'),
  UPSTREAM_NUGET_URL: baseUrl.default('https://api.nuget.org'),
  UPSTREAM_PACKAGIST_URL: baseUrl.default('https://repo.packagist.org'),
};

/** Builds the sources. */
export function assemblePackages(env: z.output<z.ZodObject<typeof packagesEnvironment>>): PackagesConfig {
  return {
    npmUrl: env.UPSTREAM_NPM_URL ?? null,
    npmDownloadsUrl: env.UPSTREAM_NPM_DOWNLOADS_URL,
    depsDevUrl: env.UPSTREAM_DEPS_DEV_URL,
    pypiUrl: env.UPSTREAM_PYPI_URL,
    osvUrl: env.UPSTREAM_OSV_URL,
    nugetUrl: env.UPSTREAM_NUGET_URL,
    packagistUrl: env.UPSTREAM_PACKAGIST_URL,
  };
}
