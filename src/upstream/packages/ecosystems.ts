import { compare as comparePep440, valid as validPep440 } from '@renovatebot/pep440';
import semver from 'semver';
import validateNpmName from 'validate-npm-package-name';

/** Orders two versions by their ecosystem's rules: below, at or above 0; null when the order is unknown. */
export type CompareVersions = (a: string, b: string) => number | null;

/** Each version once, ascending. When any two cannot be compared, all stay in the given order. */
export function sortVersions(versions: readonly string[], compare: CompareVersions): string[] {
  const unique = [...new Set(versions)];
  const comparable = unique.every((version) => compare(version, version) === 0);
  return comparable ? unique.sort((a, b) => compare(a, b) ?? 0) : unique;
}

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

/** Maven, RubyGems, NuGet and Composer agree on numbers (missing ones are zero), not on letters: they have no order. */
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

/** npm's own limit. Only Maven and Go allow longer names, and none is in use. */
const MAX_NAME = 214;

function plainName(form: RegExp, normalise = (name: string) => name) {
  return (text: string): string | null => (text.length <= MAX_NAME && form.test(text) ? normalise(text) : null);
}

/** Follows npm's rules for existing names: old packages may have upper-case letters and signs that new ones may not. */
function normaliseNpmName(text: string): string | null {
  return text.length <= MAX_NAME && validateNpmName(text).validForOldPackages ? text : null;
}

/** PEP 508's form in PEP 503's spelling: lower case, each run of dashes, dots and underscores one dash. */
export const normalisePypiName = plainName(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, (name) =>
  name.toLowerCase().replace(/[-_.]+/g, '-'),
);

/** OSV's names for the language itself, beside module paths. */
export const GO_LANGUAGE = /^(stdlib|toolchain)$/;
/** A module path begins with a host name, so its first element has a dot (https://go.dev/ref/mod#module-path). */
const GO_MODULE = /^(?=[^/]*\.)[A-Za-z0-9][\w.~-]*(\/[\w.~-]+)*$/;

function normaliseGoModule(text: string): string | null {
  if (GO_LANGUAGE.test(text)) return text;
  const dots = text.split('/').some((element) => /^\.+$/.test(element));
  return text.length <= MAX_NAME && GO_MODULE.test(text) && !dots ? text : null;
}

/** The form of a version in any ecosystem: no white space, no operator, no wildcard, no list. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9.+_!-]{0,99}$/;
/** `1.x` asks for many versions, as does a tag such as `latest` (Maven's are upper case). */
const MANY = /(^|\.)x(\.|$)|^(latest|release|next|stable|dev|head|main|master)$/i;

function plainVersion(text: string): string | null {
  return PLAIN.test(text) && !MANY.test(text) ? text : null;
}

/** Outside Maven all versions begin with a number. */
function numberedVersion(text: string): string | null {
  return /^v?\d/i.test(text) ? plainVersion(text) : null;
}

function semanticVersion(text: string): string | null {
  const plain = text.replace(/^v/, '');
  return PLAIN.test(plain) && semver.valid(plain) !== null ? plain : null;
}

/** Modules carry semantic versions, the language numbers such as 1.20 and 1.21rc1: at OSV without the `v` or `go`. */
function goVersion(text: string): string | null {
  const plain = text.replace(/^(v|go)/, '');
  return semanticVersion(plain) ?? (/^1\.\d{1,4}(\.\d{1,4})?((rc|beta)\d{1,3})?$/.test(plain) ? plain : null);
}

/** The functions return the normalised form, or null for an invalid text. */
interface Ecosystem {
  /** OSV's name for it, letter case included (https://ossf.github.io/osv-schema/#defined-ecosystems). */
  readonly osv: string;
  readonly nameForm: string;
  name(text: string): string | null;
  readonly versionForm: string;
  version(text: string): string | null;
  readonly compare: CompareVersions;
}

const semantic = { versionForm: 'one exact version such as 1.2.3', version: semanticVersion, compare: compareSemver };
const numbered = { versionForm: 'one exact version such as 1.2.3', version: numberedVersion, compare: compareNumeric };

/** The eight ecosystems, by their names in our interface: how each names packages and versions, and orders versions. */
export const ECOSYSTEMS = {
  npm: {
    osv: 'npm',
    nameForm: 'an npm package name such as express or @babel/core',
    name: normaliseNpmName,
    ...semantic,
  },
  pypi: {
    osv: 'PyPI',
    nameForm: 'a PyPI project name: letters, digits, dots, dashes and underscores, with a letter or digit at each end',
    name: normalisePypiName,
    versionForm: 'one exact version such as 3.1.4 (PEP 440)',
    version: (text) => (PLAIN.test(text) && validPep440(text) !== null ? text : null),
    compare: comparePython,
  },
  go: {
    osv: 'Go',
    nameForm: 'a Go module path such as golang.org/x/net, or stdlib',
    name: normaliseGoModule,
    versionForm: 'one exact version such as v1.2.3',
    version: goVersion,
    compare: compareSemver,
  },
  'crates.io': {
    osv: 'crates.io',
    nameForm: 'a crate name such as tokio',
    name: plainName(/^[A-Za-z][\w-]{0,63}$/),
    ...semantic,
  },
  maven: {
    osv: 'Maven',
    nameForm: 'group and artifact with one colon between, such as org.apache.logging.log4j:log4j-core',
    name: plainName(/^[\w.-]+:[\w.-]+$/),
    versionForm: 'one exact version such as 2.14.1',
    version: plainVersion,
    compare: compareNumeric,
  },
  rubygems: {
    osv: 'RubyGems',
    nameForm: 'a gem name such as rails',
    name: plainName(/^(?=.*[A-Za-z])[A-Za-z0-9][\w.-]*$/),
    ...numbered,
  },
  nuget: {
    osv: 'NuGet',
    nameForm: 'a NuGet package id such as Newtonsoft.Json',
    name: plainName(/^(?=.{1,100}$)\w+([.-]\w+)*$/),
    ...numbered,
  },
  packagist: {
    osv: 'Packagist',
    nameForm: 'vendor and package with one slash between, such as guzzlehttp/guzzle',
    name: plainName(/^[a-z0-9]+([_.-][a-z0-9]+)*\/[a-z0-9]+(([_.]|-{1,2})[a-z0-9]+)*$/i, (name) => name.toLowerCase()),
    ...numbered,
  },
} satisfies Record<string, Ecosystem>;

export type EcosystemName = keyof typeof ECOSYSTEMS;
