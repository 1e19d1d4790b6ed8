import { readFileSync } from 'node:fs';

/** A package as package-lock.json names it. */
export interface LockedPackage {
  readonly version?: string;
  /** An SPDX expression, as the package states it. */
  readonly license?: string;
  /** Subresource integrity: the algorithm, a hyphen, and the checksum in base64. */
  readonly integrity?: string;
  /** Only development needs it. A package that production needs too has no such mark. */
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  /** A folder of this machine stands in its place. */
  readonly link?: boolean;
}

/** package-lock.json in the form of npm 7 and later. The keys of `packages` are paths; the project itself has the empty one. */
export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** A package by its name. One name and version may stand in several places of the tree. */
export interface NamedPackage extends LockedPackage {
  readonly name: string;
  readonly version: string;
}

/** Reads the lock file. Throws when the file is missing or is no JSON. */
export const readLock = (file: string): LockFile => JSON.parse(readFileSync(file, 'utf8')) as LockFile;

/**
 * The paths of the packages whose entry has no checksum: npm would install whatever the registry sends under their
 * name. The project itself and a folder that is linked are not downloaded.
 */
export function withoutChecksum(lock: LockFile): string[] {
  const found = Object.entries(lock.packages).filter(([path, entry]) => path !== '' && !entry.link && !entry.integrity);
  return found.map(([path]) => path);
}

/** The name of the package at a path of the tree. */
export const nameAt = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** The packages that `npm ci --omit=dev --include=prod` installs (`ships`), or only development does. Each name and version once, in the order of the names. */
export function packagesOf(lock: LockFile, which: 'ships' | 'development'): NamedPackage[] {
  const found = new Map<string, NamedPackage>();
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '' || (entry.dev === true) !== (which === 'development')) continue;
    const name = nameAt(path);
    if (entry.version !== undefined) found.set(`${name}@${entry.version}`, { ...entry, name, version: entry.version });
  }
  return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}
