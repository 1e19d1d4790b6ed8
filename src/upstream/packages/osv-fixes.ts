import { ECOSYSTEMS, type EcosystemName } from './ecosystems.ts';
import { type AffectedRange, holds, orderOf, rangesOf } from './osv-ranges.ts';
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
  const ranges = versionEvents(records, asked);
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

/** The versions that are affected: each range once, ascending where they can be compared, and for a given version only ranges that hold it, or may hold it when the order is unknown. */
export function affectedRanges(records: readonly OsvRecord[], asked: Asked): AffectedRange[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const { version } = asked;
  const ranges = versionEvents(records, asked).flatMap((events) => rangesOf(events, compare));
  const unique = new Map(ranges.map((range) => [JSON.stringify(range), range]));
  const start = (range: AffectedRange) => range.introduced ?? '0';
  return [...unique.values()]
    .filter((range) => version === null || holds(range, version, compare) !== false)
    .sort((a, b) => orderOf(compare)(start(a), start(b)) ?? 0);
}

/** The versions that the records list one by one, each once, in their order; for a given version that one, if it is listed. */
export function affectedVersions(records: readonly OsvRecord[], asked: Asked): string[] {
  const { compare } = ECOSYSTEMS[asked.ecosystem];
  const { version } = asked;
  const listed = records.flatMap((record) => affectedParts(record, asked)).flatMap(({ versions }) => versions);
  const isAsked = (one: string) => version === null || one === version || compare(one, version) === 0;
  return [...new Set(listed.filter(isAsked))];
}

/** The events of each range of versions of the package. Ranges of commits are left out. */
function versionEvents(records: readonly OsvRecord[], asked: Asked): OsvEvent[][] {
  return records
    .flatMap((record) => affectedParts(record, asked))
    .flatMap((part) => part.ranges)
    .filter((range) => range.type !== 'GIT')
    .map((range) => range.events);
}

/** The fix that ends the range with this version. Null when no range holds it, when the range has no fix, or when the order is unknown. */
function fixOnLine(events: readonly OsvEvent[], version: string, compare: CompareVersions): string | null {
  const sides = rangesOf(events, compare).map((range) => ({ range, held: holds(range, version, compare) }));
  if (sides.some(({ held }) => held === null)) return null;
  return sides.find(({ held }) => held)?.range.fixed ?? null;
}
