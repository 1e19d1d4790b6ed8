import { z } from 'zod';
import { NotFound, UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import type { Dated, Upstream } from '../client/http.ts';
import { manifestSchema, type NpmRelease, readRelease } from './npm-manifest.ts';
import { AnswerTooLarge } from './npm-registry.ts';

/** The latest release of an npm package, with where and when it was read. */
export interface NpmPackage extends NpmRelease {
  readonly publishedAt: number | null;
  readonly url: string;
  readonly retrievedAtMs: number;
}

export interface Npm {
  /** The release of the registry's `latest` tag. Null when there is no such package. Rejects with NotFound when the package was unpublished. */
  latest(name: string, signal?: AbortSignal): Promise<NpmPackage | null>;
}

interface NpmDeps {
  readonly registry: Upstream;
  /** The registry's base URL, without a trailing slash. */
  registryUrl(): Promise<string>;
  /** The publication time of a version whose packument is too large to read; null when unknown. */
  publishedAt(name: string, version: string, signal?: AbortSignal): Promise<number | null>;
}

const packumentSchema = z.object({
  name: z.string(),
  'dist-tags': z.record(z.string(), z.string()).optional(),
  versions: z.record(z.string(), z.unknown()).optional(),
  time: z.record(z.string(), z.unknown()).optional(),
  license: z.unknown().optional(),
  licenses: z.unknown().optional(),
});

/** Reads the full packument, because only it has the time of publishing. When it is larger than the cap, reads the latest version's manifest. */
export function createNpm({ registry, registryUrl, publishedAt }: NpmDeps): Npm {
  const read = async <T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal) =>
    registry.jsonDated({ url: `${await registryUrl()}/${path}`, ...(signal && { signal }) }, schema);

  async function readManifest(name: string, signal?: AbortSignal): Promise<NpmPackage | null> {
    const got = await read(`${pathOf(name)}/latest`, manifestSchema, signal);
    if (!got) return null;
    requireName(registry, name, got.data.name);
    const release = readRelease(got.data, {});
    return dated(got, release, await publishedAt(name, release.version, signal));
  }

  // Packuments only grow, so one that was too large is not asked for again.
  const tooLarge = new Set<string>();
  function remember(name: string): void {
    const [oldest] = tooLarge;
    if (tooLarge.size >= MAX_REMEMBERED && oldest !== undefined) tooLarge.delete(oldest);
    tooLarge.add(name);
  }

  return {
    async latest(name, signal) {
      if (tooLarge.has(name)) return readManifest(name, signal);
      try {
        const got = await read(pathOf(name), packumentSchema, signal);
        return got && fromPackument(registry, name, got);
      } catch (error) {
        if (!(error instanceof UpstreamFailed && error.cause instanceof AnswerTooLarge)) throw error;
        remember(name);
        return readManifest(name, signal);
      }
    },
  };
}

/** A few hundred packages are as large. */
const MAX_REMEMBERED = 1000;

/** The path as npm's own client writes it: only the scope's slash is encoded. */
function pathOf(name: string): string {
  return name.replace('/', '%2f');
}

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
