const UNRELEASED = '## [Unreleased]';

/** The entries that wait for a release. Throws when the changelog has no such heading. */
export function unreleasedOf(changelog: string): string {
  const [, after] = changelog.split(`${UNRELEASED}\n`);
  if (after === undefined) throw new Error(`CHANGELOG.md has no heading "${UNRELEASED}"`);
  return (after.split(/^## /m)[0] ?? '').trim();
}

/** Moves what waits for a release under the version and its day (UTC, YYYY-MM-DD). The heading above stays, with nothing below it. */
export function moveUnreleased(changelog: string, version: string, day: string): string {
  if (unreleasedOf(changelog) === '') throw new Error('CHANGELOG.md says nothing about this release');
  return changelog.replace(`${UNRELEASED}\n`, () => `${UNRELEASED}\n\n## [${version}] - ${day}\n`);
}
