import { valid as validPep440 } from '@renovatebot/pep440';
import semver from 'semver';
import { normaliseGoModule, normaliseNpmName, normalisePypiName, plainName } from './package-names.ts';
import { type CompareVersions, compareNumeric, comparePython, compareSemver } from './versions.ts';

/** How one ecosystem names packages and versions. The functions return the normalised form, or null for an invalid text. */
export interface Ecosystem {
  /** OSV's name for it, letter case included (https://ossf.github.io/osv-schema/#defined-ecosystems). */
  readonly osv: string;
  readonly nameForm: string;
  name(text: string): string | null;
  readonly versionForm: string;
  version(text: string): string | null;
  readonly compare: CompareVersions;
}

/** The form of a version in any ecosystem: no white space, no operator, no wildcard, no list. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9.+_!-]{0,99}$/;
/** `1.x` asks for many versions, as does a tag such as `latest` (Maven's are upper case). */
const MANY = /(^|\.)x(\.|$)|^(latest|release|next|stable|dev|head|main|master)$/i;

function plainVersion(text: string): string | null {
  return PLAIN.test(text) && !MANY.test(text) ? text : null;
}

/** Like plainVersion, but beginning with a number, as all versions outside Maven do. */
function numberedVersion(text: string): string | null {
  return /^v?\d/i.test(text) ? plainVersion(text) : null;
}

function semanticVersion(text: string): string | null {
  const plain = text.replace(/^v/, '');
  return PLAIN.test(plain) && semver.valid(plain) !== null ? plain : null;
}

/** Modules carry semantic versions, the language itself numbers such as 1.20 and 1.21rc1. OSV has both without the `v` or `go` in front. */
function goVersion(text: string): string | null {
  const plain = text.replace(/^(v|go)/, '');
  return semanticVersion(plain) ?? (/^1\.\d{1,4}(\.\d{1,4})?((rc|beta)\d{1,3})?$/.test(plain) ? plain : null);
}

const semantic = {
  versionForm: 'one exact version such as 1.2.3',
  version: semanticVersion,
  compare: compareSemver,
};
const numbered = {
  versionForm: 'one exact version such as 1.2.3',
  version: numberedVersion,
  compare: compareNumeric,
};

/** The eight ecosystems by their names in our interface. */
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

/** The names that the routes `packages/*` accept. */
export type EcosystemName = keyof typeof ECOSYSTEMS;
