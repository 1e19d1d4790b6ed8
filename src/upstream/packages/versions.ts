import { compare as comparePep440, valid as validPep440 } from '@renovatebot/pep440';
import semver from 'semver';

/** Orders two versions by their ecosystem's rules: below, at or above 0; null when the order is unknown. */
export type CompareVersions = (a: string, b: string) => number | null;

/** Semantic Versioning 2.0; shorter forms (OSV writes `0` and `0.2` in events) are filled up with zeros. */
export const compareSemver: CompareVersions = (a, b) => {
  const [left, right] = [asSemver(a), asSemver(b)];
  return left && right ? semver.compare(left, right) : null;
};

function asSemver(text: string): semver.SemVer | null {
  const plain = text.replace(/^v/, '');
  const missing = 2 - (/^\d+(\.\d+)*$/.test(plain) ? plain.split('.').length - 1 : 2);
  return semver.parse(plain + '.0'.repeat(Math.max(missing, 0)));
}

/** PEP 440: epochs, pre-, post- and development releases, local versions. */
export const comparePython: CompareVersions = (a, b) =>
  validPep440(a) !== null && validPep440(b) !== null ? comparePep440(a, b) : null;

/**
 * Compares numbers between dots; missing ones are zero. Maven, RubyGems, NuGet and Composer agree on this. Their rules differ for letters, so the
 * order of versions with letters is null.
 */
export const compareNumeric: CompareVersions = (a, b) => {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  if (!left || !right) return null;
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [x, y] = [left[at] ?? 0n, right[at] ?? 0n];
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
};

function numbersOf(text: string): bigint[] | null {
  const plain = text.replace(/^v/i, '');
  return /^\d{1,20}(\.\d{1,20}){0,9}$/.test(plain) ? plain.split('.').map(BigInt) : null;
}

/** Each version once, ascending. When any two cannot be compared, all stay in the given order. */
export function sortVersions(versions: readonly string[], compare: CompareVersions): string[] {
  const unique = [...new Set(versions)];
  const comparable = unique.every((version) => compare(version, version) === 0);
  return comparable ? unique.sort((a, b) => compare(a, b) ?? 0) : unique;
}
