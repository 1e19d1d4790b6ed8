import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { installScripts } from '../../../scripts/lib/supply/install-scripts.ts';
import { forbidden, isPermissive, licencePage } from '../../../scripts/lib/supply/licences.ts';
import { type LockFile, packagesOf, readLock, withoutChecksum } from '../../../scripts/lib/supply/lock-file.ts';
import { makeSbom, type Sbom, sbomFaults } from '../../../scripts/lib/supply/sbom.ts';
import { readText } from '../../support/documents.ts';

const ROOT = join(import.meta.dirname, '../../..');
const lock = readLock(join(ROOT, 'package-lock.json'));
const manifest = JSON.parse(readText('package.json'));
const committed: Sbom = JSON.parse(readText('docs/sbom.cdx.json'));

/** The project's lock file with one more package, or another entry for one. */
const withPackage = (name: string, entry: LockFile['packages'][string]): LockFile => ({
  packages: { ...lock.packages, [`node_modules/${name}`]: entry },
});

describe('licences', () => {
  test.each([
    ['MIT', true],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT OR BUSL-1.1', true],
    ['MIT AND Zlib', true],
    ['(MIT AND GPL-3.0-only)', false],
    ['GPL-3.0-or-later', false],
    ['MPL-2.0', false],
    ['BUSL-1.1', false],
    ['MIT OR (GPL-2.0-only AND MIT)', false],
    ['SEE LICENSE IN LICENSE.md', false],
    ['UNLICENSED', false],
    ['', false],
    [undefined, false],
  ])('%s is permissive: %s', (expression, permissive) => {
    expect(isPermissive(expression)).toBe(permissive);
  });

  test('of what ships are all permissive, and the page lists every package with its own', () => {
    expect(forbidden(lock)).toEqual([]);
    const page = readText('docs/licences.md');
    expect(page).toBe(licencePage(lock));
    const [shipped = '', development = ''] = page.split('## What only development needs');
    expect(shipped).toMatch(/^\| MIT \|.* viem \d/m);
    expect(development).toMatch(/^\| BUSL-1\.1 \| 2 \| @uniswap\/v3-core/m);
    expect(packagesOf(lock, 'ships').length).toBeGreaterThan(200);
    expect(packagesOf(lock, 'development').length).toBeGreaterThan(200);
  });

  test('that are copyleft, source-available or unknown do not ship, and may serve development', () => {
    for (const license of ['GPL-3.0-only', 'BUSL-1.1'])
      expect(forbidden(withPackage('x', { version: '1.0.0', license }))).toEqual([`x@1.0.0: ${license}`]);
    expect(forbidden(withPackage('x', { version: '1.0.0' }))).toEqual(['x@1.0.0: not named in the lock file']);
    expect(forbidden(withPackage('x', { version: '1.0.0', license: 'GPL-3.0-only', dev: true }))).toEqual([]);
  });
});

describe('the lock file', () => {
  const check = (given: LockFile) => {
    const folder = mkdtempSync(join(tmpdir(), 'percall-lock-'));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(given));
    const args = [join(ROOT, 'scripts/complete-lock.ts'), '--check'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    return { status, stderr, left: readFileSync(join(folder, 'package-lock.json'), 'utf8') };
  };

  test('has a checksum for every package, optional ones of other platforms too', () => {
    expect(withoutChecksum(lock)).toEqual([]);
    expect(check(lock)).toMatchObject({ status: 0, stderr: '' });
    expect(readText('scripts/check.ts')).toContain("'node scripts/complete-lock.ts --check'");
  });

  test('fails the check without one, which names the package and changes nothing', () => {
    const lacking = withPackage('x', { version: '1.0.0', dev: true });
    const { status, stderr, left } = check(lacking);
    expect([status, left]).toEqual([1, JSON.stringify(lacking)]);
    expect(stderr).toMatch(/no checksum in package-lock\.json: node_modules\/x; `npm run lock`/);
  });
});

describe('the list of what ships', () => {
  test('agrees with package.json and package-lock.json', () => {
    expect(sbomFaults(committed, manifest, lock)).toEqual([]);
    expect(committed.components.length).toBe(packagesOf(lock, 'ships').length);
  });

  test('is made of the same bytes again', () => {
    expect(`${JSON.stringify(makeSbom(manifest, lock), null, 2)}\n`).toBe(readText('docs/sbom.cdx.json'));
  });

  test('names no host, no folder of a machine, no time and no random number', () => {
    const text = readText('docs/sbom.cdx.json');
    expect(text.match(/[a-z]+:\/\/[^"]+/g)).toEqual(['http://cyclonedx.org/schema/bom-1.5.schema.json']);
    expect(text).not.toMatch(/"(?:\/|file:)|serialNumber|timestamp|"tools"/);
    expect(readText('package-lock.json')).not.toMatch(/"resolved": "http/);
  });

  test('is at fault when a package is missing, extra, changed, licensed otherwise, or when it is of another version', () => {
    const [first, ...others] = committed.components;
    const changed = (components: Sbom['components']) => sbomFaults({ ...committed, components }, manifest, lock);
    const name = `${first?.name}@${first?.version}`;
    expect(changed(others)).toEqual([expect.stringContaining(`it lacks ${name}`)]);
    expect(changed([...committed.components, { ...first!, version: '0.0.1' }])).toEqual([
      expect.stringContaining(`it has ${first?.name}@0.0.1`),
    ]);
    const rehashed = { ...first!, hashes: [{ alg: 'SHA-512', content: '00' }] };
    expect(changed([rehashed, ...others])).toHaveLength(2);
    expect(changed([{ ...first!, licenses: [{ license: { id: 'X' } }] }, ...others])).toHaveLength(2);
    expect(changed([first!, first!, ...others])).toEqual(['it lists a package twice']);
    expect(sbomFaults(committed, { ...manifest, version: '9.9.9' }, lock)).toEqual([
      `it is of percall ${manifest.version}`,
    ]);
  });
});

describe('scripts of packages at install', () => {
  test('are allowed or refused by name, each of them and no other', () => {
    const scripts = installScripts(lock, ROOT);
    expect(scripts).toEqual(expect.arrayContaining(['better-sqlite3', 'secp256k1']));
    expect(Object.keys(manifest.allowScripts).sort()).toEqual(scripts);
    // It ships its binaries, and compiling them would take a minute and a compiler.
    expect(manifest.allowScripts['better-sqlite3']).toBe(false);
  });

  test('that a new package brings are found', () => {
    const more = withPackage('a/node_modules/x', { version: '1.0.0', hasInstallScript: true });
    expect(installScripts(more, ROOT)).toContain('x');
    expect(installScripts(lock, '/nowhere')).not.toContain('better-sqlite3');
  });
});
