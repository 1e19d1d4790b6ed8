import { gt, valid } from 'semver';
import { unreleasedOf } from './changelog.ts';

/** The state of a working copy, as git and its files show it. */
export interface WorkingCopy {
  /** The branch that is checked out. Empty when none is. */
  readonly branch: string;
  /** Lines of `git status --porcelain`. */
  readonly changes: readonly string[];
  readonly tags: readonly string[];
  /** The version in package.json. */
  readonly version: string;
  readonly changelog: string;
}

/** The branch that releases are made of. */
const BRANCH = 'main';

/** Why a version cannot be released from here, each in a sentence. Empty when it can. The checks are not run for this. */
export function refusalsOf(wanted: string, copy: WorkingCopy): string[] {
  const { branch, changes, tags, version, changelog } = copy;
  const found: string[] = [];
  if (valid(wanted) !== wanted) found.push(`${wanted} is no version: it needs three numbers, such as 1.0.0`);
  else if (!gt(wanted, version)) found.push(`${wanted} is not above ${version}, the version in package.json`);
  if (branch !== BRANCH) found.push(`a release is made on ${BRANCH}, and ${branch || 'no branch'} is checked out`);
  if (changes.length > 0) found.push(`the working copy has changes that are not committed: ${changes[0]?.trim()}`);
  if (tags.includes(`v${wanted}`)) found.push(`the tag v${wanted} exists`);
  if (unreleasedOf(changelog) === '') found.push('CHANGELOG.md has nothing under "Unreleased"');
  return found;
}
