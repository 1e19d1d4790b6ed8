import { ECOSYSTEMS, type EcosystemName } from './ecosystems.ts';
import type { OsvEvent, OsvRecord } from './osv-record.ts';
import { type CompareVersions, sortVersions } from './versions.ts';

interface Asked {
  readonly ecosystem: EcosystemName;
  readonly name: string;
  readonly version: string | null;
}

/** The parts of a record about the given package: one record may hold several packages. */
export function affectedParts(record: OsvRecord, { ecosystem, name }: Asked) {
  const rules = ECOSYSTEMS[ecosystem];
  return record.affected.filter((part) => {
    // A suffix after a colon names a variant of the ecosystem, such as another repository.
    if (part.package?.ecosystem.split(':')[0] !== rules.osv) return false;
    return (rules.name(part.package.name) ?? part.package.name) === name;
  });
}

/**
 * The versions that fix the vulnerability, ascending; empty when none is known.
 * For a given version it is the fix of its own release line, or the fixes above it when that line has none. Commits (GIT ranges) are ignored.
 */
export function fixesOf(records: readonly OsvRecord[], asked: Asked): string[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const ranges = records
    .flatMap((record) => affectedParts(record, asked))
    .flatMap((part) => part.ranges)
    .filter((range) => range.type !== 'GIT')
    .map((range) => range.events);
  const all = sortVersions(
    ranges.flat().flatMap(({ fixed }) => fixed ?? []),
    compare,
  );
  const { version } = asked;
  if (version === null) return all;
  const own = ranges.flatMap((events) => fixOnLine(events, version, compare) ?? []);
  if (own.length > 0) return sortVersions(own, compare);
  return all.filter((fix) => (compare(fix, version) ?? 1) > 0);
}

/** The fix that ends the interval with this version. Null when no interval holds it, when the interval has no fix, or when the order is unknown. */
function fixOnLine(events: readonly OsvEvent[], version: string, compare: CompareVersions): string | null {
  // "0" means the very first version in OSV. It comes before every version, such as 0.0.0-alpha.
  const order = (a: string, b: string) => (a === '0' ? -Number(b !== '0') : b === '0' ? 1 : compare(a, b));
  const marks = events.map((event) => ({ event, at: event.fixed ?? event.last_affected ?? event.introduced ?? '0' }));
  if (marks.some(({ at }) => order(at, version) === null)) return null;
  marks.sort((a, b) => order(a.at, b.at) ?? 0);
  let inside = false;
  for (const { event, at } of marks) {
    const side = order(at, version) ?? 0;
    if (event.introduced !== undefined) {
      if (side > 0) break;
      inside = true;
    } else if (event.fixed !== undefined) {
      if (side > 0) return inside ? event.fixed : null;
      inside = false;
    } else if (event.last_affected !== undefined && side < 0) inside = false;
  }
  return null;
}
