import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Upstream } from '../client/client.ts';
import { firstToAnswer } from '../client/failure.ts';
import { compareNumeric, GO_LANGUAGE, normalisePypiName } from './ecosystems.ts';
import type { OsvQuestion } from './osv.ts';

export type FindListing = (question: OsvQuestion, signal?: AbortSignal) => Promise<Listing>;

/** Whether a registry lists a package, and the version where one is asked. */
type Listing =
  /** It does, under this spelling; advisories are filed under it. */
  | { readonly state: 'listed'; readonly name: string }
  | { readonly state: 'missing' }
  /** No registry lists it: a release of the Go language itself. */
  | { readonly state: 'unregistered' };

const MISSING: Listing = { state: 'missing' };
const UNREGISTERED: Listing = { state: 'unregistered' };
const listed = (name: string): Listing => ({ state: 'listed', name });

interface RegistriesDeps {
  readonly npm: Upstream;
  readonly npmUrl: () => Promise<string>;
  readonly pypi: Upstream;
  readonly pypiUrl: string;
  readonly depsDev: Upstream;
  readonly depsDevUrl: string;
  readonly nuget: Upstream;
  readonly nugetUrl: string;
  readonly packagist: Upstream;
  readonly packagistUrl: string;
}

const manifest = z.object({ name: z.string() }).transform(({ name }) => name);
const key = z.object({ name: z.string() });
const depsDevEntry = z
  .union([z.object({ versionKey: key }), z.object({ packageKey: key })])
  .transform((entry) => ('versionKey' in entry ? entry.versionKey.name : entry.packageKey.name));

/** OSV answers unknown names like clean ones. Packages are looked up in their registry, or at deps.dev, which lags. */
export function createFindListing(deps: RegistriesDeps): FindListing {
  const npm: FindListing = async (question, signal) => {
    const version = encodeURIComponent(question.version ?? 'latest');
    const url = `${await deps.npmUrl()}/${question.name.replace('/', '%2f')}/${version}`;
    return entry(deps.npm, url, manifest, question, signal);
  };
  const pypi = createPypiListing(deps.pypi, deps.pypiUrl);
  const nuget = createNugetListing(deps.nuget, deps.nugetUrl);
  const depsDev: FindListing = (question, signal) => {
    const { ecosystem, name, version } = question;
    // deps.dev has a name of its own for Rust's packages (https://docs.deps.dev/api/v3/).
    const system = ecosystem === 'crates.io' ? 'cargo' : ecosystem;
    const path = `${deps.depsDevUrl}/v3/systems/${system}/packages/${encodeURIComponent(name)}`;
    // It writes Go's versions as Go does, OSV without the v.
    const prefix = ecosystem === 'go' ? 'v' : '';
    const exact = version === null ? '' : `/versions/${encodeURIComponent(prefix + version)}`;
    return entry(deps.depsDev, `${path}${exact}`, depsDevEntry, question, signal);
  };
  const packagist: FindListing = async ({ name, version }, signal) => {
    const url = `${deps.packagistUrl}/p2/${name}.json`;
    const found = await deps.packagist.json({ url, signal }, releases(name));
    const has = found?.some((one) => version === null || isSame(one, version));
    return has ? listed(name) : MISSING;
  };

  return (question, signal) => {
    const first = (...finds: FindListing[]) =>
      firstToAnswer(
        'registry',
        finds.map((find) => () => find(question, signal)),
      );
    switch (question.ecosystem) {
      case 'npm':
        return first(npm, depsDev);
      case 'pypi':
        return first(pypi, depsDev);
      case 'nuget':
        return nuget(question, signal);
      case 'packagist':
        return first(packagist);
      default:
        if (question.ecosystem === 'go' && GO_LANGUAGE.test(question.name)) return Promise.resolve(UNREGISTERED);
        return first(depsDev);
    }
  };
}

/** The registry's own spelling may differ from the asked one in letter case and separators only. */
async function entry(
  upstream: Upstream,
  url: string,
  schema: z.ZodType<string>,
  asked: OsvQuestion,
  signal?: AbortSignal,
) {
  const name = await upstream.json({ url, signal }, schema);
  if (name !== null && plain(name) !== plain(asked.name)) {
    throw new UpstreamFailed(upstream.name, 'answered for another package');
  }
  if (name === null) return MISSING;
  // Advisories of PyPI are filed under the normalised name, which was asked for.
  return listed(asked.ecosystem === 'pypi' ? asked.name : name);
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_.]/g, '');
}

/** PyPI sends it with every project that it has (https://docs.pypi.org/api/json/): such an answer is PyPI's own. */
const SERIAL = 'x-pypi-last-serial';

const project = z.object({ info: z.object({ name: z.string() }) }).transform(({ info }) => info.name);

/** Reads the head of PyPI's document, which has some megabytes. A host unlike PyPI (a mirror) is asked for all. */
function createPypiListing(upstream: Upstream, baseUrl: string) {
  return async ({ name, version }: OsvQuestion, signal?: AbortSignal): Promise<Listing> => {
    const release = version === null ? '' : `/${encodeURIComponent(version)}`;
    const request = { url: `${baseUrl}/pypi/${name}${release}/json`, signal };
    const head = await upstream.fetch({ ...request, method: 'HEAD' });
    if (head.status === 404) return MISSING;
    if (head.status === 200 && head.headers[SERIAL] !== undefined) return listed(name);
    if (head.status === 429 || head.status >= 500)
      throw new UpstreamFailed(upstream.name, `answered HTTP ${head.status}`);
    const found = await upstream.json(request, project);
    if (found === null) return MISSING;
    if (normalisePypiName(found) !== name) throw new UpstreamFailed(upstream.name, 'answered for another package');
    return listed(name);
  };
}

/** One package's versions in Packagist's metadata (https://packagist.org/apidoc, p2). */
function releases(name: string) {
  return z
    .object({ packages: z.record(z.string(), z.array(z.object({ version: z.string() }))) })
    .transform(({ packages }, context) => {
      const found = packages[name];
      if (found !== undefined) return found.map(({ version }) => version);
      context.addIssue('another package');
      return z.NEVER;
    });
}

/** Composer's versions may have a v in front, and missing numbers are zero. */
function isSame(published: string, asked: string): boolean {
  const bare = (version: string) => version.replace(/^v/i, '').toLowerCase();
  return bare(published) === bare(asked) || compareNumeric(published, asked) === 0;
}

const versionsSchema = z.object({ versions: z.array(z.string()).min(1) }).transform(({ versions }) => versions);

/** A manifest is a few kilobytes, and its id stands at its beginning. */
const ID = /<id>\s*([\w.-]{1,100})\s*<\/id>/;

/** Letter case is ignored, but advisories are filed under the author's spelling, which only the manifest has. */
function createNugetListing(upstream: Upstream, baseUrl: string) {
  return async ({ name, version }: OsvQuestion, signal?: AbortSignal): Promise<Listing> => {
    const id = name.toLowerCase();
    const folder = `${baseUrl}/v3-flatcontainer/${id}`;
    const versions = await upstream.json({ url: `${folder}/index.json`, signal }, versionsSchema);
    const exact = versions?.findLast((one) => version === null || isSameNuget(one, version));
    if (exact === undefined) return MISSING;
    const url = `${folder}/${encodeURIComponent(exact)}/${id}.nuspec`;
    const manifest = await upstream.fetch({ url, accept: 'application/xml', signal });
    if (manifest.status !== 200) throw new UpstreamFailed(upstream.name, `answered HTTP ${manifest.status}`);
    const spelling = ID.exec(manifest.body.toString('utf8'))?.[1];
    if (spelling?.toLowerCase() !== id)
      throw new UpstreamFailed(upstream.name, 'answered a manifest of another package');
    return listed(spelling);
  };
}

/** Ignores letter case, zeros and build metadata (https://learn.microsoft.com/nuget/concepts/package-versioning). */
function isSameNuget(published: string, asked: string): boolean {
  const bare = (text: string) => text.toLowerCase().replace(/\+.*$/, '');
  return bare(published) === bare(asked) || compareNumeric(bare(published), bare(asked)) === 0;
}
