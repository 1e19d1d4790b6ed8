import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LockedPackage, type LockFile, packagesOf } from './lock-file.ts';

/** A package in a CycloneDX document, as npm writes it. */
interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[];
}

/** The parts of a CycloneDX document that this project reads or sets. */
export interface Sbom {
  readonly serialNumber?: string;
  readonly metadata: {
    readonly timestamp?: string;
    readonly tools?: unknown;
    readonly component: Component;
    readonly [more: string]: unknown;
  };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly devDependencies?: unknown;
}

/**
 * Lists what ships as a CycloneDX document, with npm's own writer. The same lock file gives the same bytes on every machine: the time, the random
 * serial number, npm's version and the folder's name are left out. npm gets the lock file without development packages, because `npm sbom --omit dev`
 * (11.19) also leaves out packages that production shares with them, such as viem: 128 of 269.
 */
export function makeSbom(manifest: Manifest, lock: LockFile): Sbom {
  const folder = mkdtempSync(join(tmpdir(), 'percall-sbom-'));
  try {
    const { devDependencies: _, ...shipped } = manifest;
    const { devDependencies: __, ...root } = lock.packages[''] as LockedPackage & { devDependencies?: unknown };
    const kept = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true);
    const packages = { '': root, ...Object.fromEntries(kept) };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(shipped));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
    const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
    const text = execFileSync('npm', args, { cwd: folder, maxBuffer: 1 << 26, stdio: ['ignore', 'pipe', 'pipe'] });
    return withoutChance(JSON.parse(text.toString()) as Sbom, manifest.name);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function withoutChance(made: Sbom, name: string): Sbom {
  const { serialNumber: _, metadata, components, dependencies, ...rest } = made;
  const { timestamp: __, tools: ___, ...kept } = metadata;
  return {
    ...rest,
    metadata: { ...kept, component: { ...metadata.component, name } },
    components: components.toSorted((a, b) => (a.purl < b.purl ? -1 : 1)),
    dependencies: dependencies.toSorted((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
}

/**
 * What a document says otherwise than the lock file: missing and extra packages, other checksums or licences, another version of the project. Empty when
 * they agree. It runs no npm, so that the check needs none of a certain version.
 */
export function sbomFaults(sbom: Sbom, manifest: Manifest, lock: LockFile): string[] {
  const { name, version } = sbom.metadata.component;
  const faults = name === manifest.name && version === manifest.version ? [] : [`it is of ${name} ${version}`];
  const wanted = new Set(packagesOf(lock, 'ships').map(lineOf));
  const listed = new Set(sbom.components.map((one) => lineOf({ ...one, ...read(one) })));
  faults.push(...[...wanted].filter((one) => !listed.has(one)).map((one) => `it lacks ${one}`));
  faults.push(...[...listed].filter((one) => !wanted.has(one)).map((one) => `it has ${one}`));
  if (sbom.components.length !== listed.size) faults.push('it lists a package twice');
  return faults;
}

/** A component's licence and checksum in the lock file's form. */
function read({ hashes = [], licenses = [] }: Component): Pick<LockedPackage, 'license' | 'integrity'> {
  const license = licenses.map(({ license, expression }) => license?.id ?? expression).join(' and ');
  const sums = hashes.map(({ alg, content }) => {
    return `${alg.toLowerCase().replace('-', '')}-${Buffer.from(content, 'hex').toString('base64')}`;
  });
  return { license, ...(sums.length > 0 && { integrity: sums.join(' ') }) };
}

const lineOf = ({ name, version, license, integrity }: LockedPackage & { name: string }): string =>
  `${name}@${version} (${license}, ${integrity ?? 'no checksum'})`;
