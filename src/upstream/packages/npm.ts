import { z } from 'zod';
import { NotFound, UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import type { Dated, Retrieved, Upstream } from '../client/client.ts';
import { AnswerTooLarge } from './npm-registry.ts';
import { npmLicence, type ProjectUrl, projectUrls, repositoryPage } from './project.ts';

export interface Npm {
  /** The release of the `latest` tag. Null when there is no such package; NotFound when it was unpublished. */
  latest(name: string, signal?: AbortSignal): Promise<NpmPackage | null>;
}

interface NpmPackage extends NpmRelease, Retrieved {
  readonly publishedAt: number | null;
}

interface NpmRelease extends NpmDist {
  readonly name: string;
  readonly version: string;
  readonly description: string | null;
  readonly licence: string | null;
  readonly dependencies: Ranges;
  readonly peerDependencies: Ranges;
  readonly engines: Ranges | null;
  readonly deprecated: string | null;
  readonly homepage: string | null;
  readonly repository: string | null;
  readonly projectUrls: ProjectUrl[];
}

type Ranges = Record<string, string>;

/** Of the published file (https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md#dist). */
interface NpmDist {
  /** Bytes of all files; null: published before the registry measured them. */
  readonly unpackedSizeBytes: number | null;
  readonly fileCount: number | null;
  /** Subresource Integrity of the tarball; null: published before there was one. */
  readonly integrity: string | null;
  /** The registry's attestation of how the version was built; null: it has none. */
  readonly provenance: { readonly predicateType: string; readonly url: string } | null;
}

/** Packuments that are known to be too large. A few hundred packages are as large. */
const MAX_REMEMBERED = 1000;

/**
 * Reads the full packument, for the time of publishing. Of a larger one the latest manifest, and
 * `publishedAt`, deps.dev's time; null when unknown. `registryUrl` ends without a slash.
 */
export function createNpm(
  registry: Upstream,
  registryUrl: () => Promise<string>,
  publishedAt: (name: string, version: string, signal?: AbortSignal) => Promise<number | null>,
): Npm {
  const read = async <T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal) =>
    registry.jsonDated({ url: `${await registryUrl()}/${path}`, signal }, schema);

  async function readManifest(name: string, signal?: AbortSignal): Promise<NpmPackage | null> {
    const got = await read(`${pathOf(name)}/latest`, manifestSchema, signal);
    if (!got) return null;
    requireName(registry, name, got.data.name);
    const release = readRelease(got.data, {});
    return dated(got, release, await publishedAt(name, release.version, signal));
  }

  // Packuments only grow, so one that was too large is not asked for again.
  const tooLarge = boundedMap<string, true>(MAX_REMEMBERED);

  return {
    async latest(name, signal) {
      if (tooLarge.has(name)) return readManifest(name, signal);
      try {
        const got = await read(pathOf(name), packumentSchema, signal);
        return got && fromPackument(registry, name, got);
      } catch (error) {
        if (!(error instanceof UpstreamFailed && error.cause instanceof AnswerTooLarge)) throw error;
        tooLarge.set(name, true);
        return readManifest(name, signal);
      }
    },
  };
}

/** As npm's own client writes it: only the scope's slash is encoded. */
function pathOf(name: string): string {
  return name.replace('/', '%2f');
}

const packumentSchema = z.object({
  name: z.string(),
  'dist-tags': z.record(z.string(), z.string()).optional(),
  versions: z.record(z.string(), z.unknown()).optional(),
  time: z.record(z.string(), z.unknown()).optional(),
  license: z.unknown().optional(),
  licenses: z.unknown().optional(),
});

function fromPackument(registry: Upstream, name: string, got: Dated<z.output<typeof packumentSchema>>): NpmPackage {
  const { versions, time = {}, ...packument } = got.data;
  requireName(registry, name, packument.name);
  if (!versions) {
    if (time.unpublished !== undefined) throw new NotFound(`the npm package ${name} was unpublished`);
    throw new UpstreamFailed(registry.name, 'answered a package without versions');
  }
  const latest = packument['dist-tags']?.latest;
  const manifest = latest !== undefined && Object.hasOwn(versions, latest) ? versions[latest] : undefined;
  if (latest === undefined || manifest === undefined)
    throw new NotFound(`the npm package ${name} has no latest version`);
  const parsed = manifestSchema.safeParse(manifest);
  if (!parsed.success)
    throw new UpstreamFailed(registry.name, 'answered a version of an unexpected shape', parsed.error);
  return dated(got, readRelease(parsed.data, packument), Object.hasOwn(time, latest) ? secondsOf(time[latest]) : null);
}

/** Throws UpstreamFailed when a mirror or a cache answers for another package than the one paid for. */
function requireName(registry: Upstream, asked: string, answered: string): void {
  if (answered !== asked) throw new UpstreamFailed(registry.name, 'answered for another package');
}

function dated(got: Dated<unknown>, release: NpmRelease, publishedAt: number | null): NpmPackage {
  return { ...release, publishedAt, url: got.url, retrievedAtMs: got.retrievedAtMs };
}

/** Old registries stored package.json unchecked, so only name and version have a reliable type. */
export const manifestSchema = z.object({
  name: z.string(),
  version: z.string(),
  description: z.unknown().optional(),
  license: z.unknown().optional(),
  licenses: z.unknown().optional(),
  dependencies: z.unknown().optional(),
  peerDependencies: z.unknown().optional(),
  engines: z.unknown().optional(),
  deprecated: z.unknown().optional(),
  homepage: z.unknown().optional(),
  repository: z.unknown().optional(),
  bugs: z.unknown().optional(),
  funding: z.unknown().optional(),
  dist: z.unknown().optional(),
});

/** Reads every old form. `whole` is the package's own entry, because some licences are stated only there. */
export function readRelease(
  manifest: z.output<typeof manifestSchema>,
  whole: { license?: unknown; licenses?: unknown },
): NpmRelease {
  return {
    name: manifest.name,
    version: manifest.version,
    description: textOf(manifest.description),
    licence: npmLicence(manifest.license, manifest.licenses, whole.license, whole.licenses),
    dependencies: rangesOf(manifest.dependencies),
    peerDependencies: rangesOf(manifest.peerDependencies),
    engines: enginesOf(manifest.engines),
    deprecated: deprecationOf(manifest.deprecated),
    homepage: textOf(manifest.homepage),
    repository: repositoryOf(manifest.repository),
    projectUrls: projectUrls([
      ['homepage', manifest.homepage],
      ['repository', repositoryPage(urlOf(manifest.repository))],
      ['bugs', urlOf(manifest.bugs)],
      ...[manifest.funding].flat().map((entry) => ['funding', urlOf(entry)] as const),
    ]),
    ...readDist(manifest.dist),
  };
}

const MAX_TEXT = 2000;

function textOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  return value.trim().slice(0, MAX_TEXT).toWellFormed() || null;
}

function rangesOf(value: unknown): Ranges {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** An object, or in old packages an array such as `["node >= 0.8.0"]`. */
function enginesOf(value: unknown): Ranges | null {
  const pairs = Array.isArray(value)
    ? value.filter((entry) => typeof entry === 'string').map((entry: string) => splitEngine(entry.trim()))
    : Object.entries(rangesOf(value));
  return pairs.length > 0 ? Object.fromEntries(pairs) : null;
}

function splitEngine(text: string): [string, string] {
  const name = /^[A-Za-z][\w-]*/.exec(text)?.[0] ?? text;
  return [name, text.slice(name.length).trim() || '*'];
}

/** false and "" both mean that it is not; npm's client never writes true, but then there is no message to show. */
function deprecationOf(value: unknown): string | null {
  return value === true ? 'deprecated without a message' : textOf(value);
}

function repositoryOf(value: unknown): string | null {
  return textOf(urlOf(value))?.replace(/^git\+/, '') ?? null;
}

/** Of an object such as `{ type, url }`, or plain. */
function urlOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'url' in value ? value.url : value;
}

const text = z.string().max(500);
const count = z.int().nonnegative().nullable().catch(null);

/** One odd member must not hide the others, so each is checked by itself. */
const distSchema = z.object({
  unpackedSize: count,
  fileCount: count,
  integrity: text.nullable().catch(null),
  attestations: z
    .object({ url: text.regex(/^https?:\/\//), provenance: z.object({ predicateType: text }) })
    .nullable()
    .catch(null),
});

export function readDist(dist: unknown): NpmDist {
  const read = distSchema.safeParse(typeof dist === 'object' && dist !== null ? dist : {}).data;
  const attested = read?.attestations;
  return {
    unpackedSizeBytes: read?.unpackedSize ?? null,
    fileCount: read?.fileCount ?? null,
    integrity: read?.integrity ?? null,
    provenance: attested ? { predicateType: attested.provenance.predicateType, url: attested.url } : null,
  };
}

const pointSchema = z.object({ downloads: z.int().nonnegative(), package: z.string() });

/** Downloads of the last seven days; null when npm counts none. Rejects with UpstreamFailed when it does not answer. */
export function createNpmDownloads(upstream: Upstream, baseUrl: string) {
  return async (name: string, signal?: AbortSignal): Promise<number | null> => {
    // Unlike the registry, this API takes scoped names with a plain slash.
    const url = `${baseUrl}/downloads/point/last-week/${name}`;
    const point = await upstream.json({ url, signal }, pointSchema);
    return point?.package === name ? point.downloads : null;
  };
}
