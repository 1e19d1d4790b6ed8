import { z } from 'zod';
import { npmLicence } from './licence.ts';
import { type NpmDist, readDist } from './npm-dist.ts';
import { type ProjectUrl, projectUrls, repositoryPage } from './project-urls.ts';

/** Version ranges by package name. */
type Ranges = Record<string, string>;

/** One published version in a uniform shape. */
export interface NpmRelease extends NpmDist {
  readonly name: string;
  readonly version: string;
  readonly description: string | null;
  readonly licence: string | null;
  readonly dependencies: Ranges;
  readonly peerDependencies: Ranges;
  /** null: the package states none. */
  readonly engines: Ranges | null;
  /** The message; null: not deprecated. */
  readonly deprecated: string | null;
  readonly homepage: string | null;
  readonly repository: string | null;
  /** Pages that it names: homepage, repository, bugs, funding. */
  readonly projectUrls: readonly ProjectUrl[];
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

/** Longest text that is passed on, in characters. */
const MAX_TEXT = 2000;

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

/** A plain address, or that of an object such as `{ type, url }`. */
function urlOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'url' in value ? value.url : value;
}
