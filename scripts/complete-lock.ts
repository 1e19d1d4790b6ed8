import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { nameAt, readLock, withoutChecksum } from './lib/supply/lock-file.ts';

// `npm run lock`: completes package-lock.json. When a registry mirror lacks the binaries of other platforms, npm leaves
// their entries out of the lock file, and then `npm ci` refuses it ("Missing: … from lock file"). This script adds the
// missing entry of each optional dependency, and asks the registry for the checksum of each entry that has none. A
// platform that does not need the package skips it. Another platform installs it by its exact version and checksum.
// With --check it asks nobody and changes nothing. Either way it exits with 1 when an entry has no checksum in the end.

interface Entry {
  version?: string;
  integrity?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const SYSTEMS = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'openharmony',
  'win32',
  'wasi',
  'sunos',
  'netbsd',
  'openbsd',
  'aix',
];
const PROCESSORS: Record<string, string> = { amd64: 'x64', x86: 'ia32', armv7: 'arm', arm: 'arm', wasm32: 'wasm32' };
const SAME = ['x64', 'arm64', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64', 'mips64el'];

/** The platform in a binary package's name. npm skips the package on every other platform. */
function platformOf(name: string): Pick<Entry, 'os' | 'cpu' | 'libc'> {
  const words = name.split(/[-/]/);
  const os = SYSTEMS.filter((system) => words.includes(system));
  const cpu = [...SAME.filter((one) => words.includes(one)), ...words.flatMap((word) => PROCESSORS[word] ?? [])];
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : words.includes('gnu') ? ['glibc'] : [];
  return {
    ...(os.length > 0 && { os: os.map((one) => (one === 'wasi' ? 'none' : one)) }),
    ...(cpu.length > 0 && { cpu: [...new Set(cpu)] }),
    ...(libc.length > 0 && { libc }),
  };
}

const file = 'package-lock.json';
const lock = readLock(file) as { packages: Record<string, Entry> };

/** Adds the entries that npm left out, and returns their names. */
function addMissing(): string[] {
  const added: string[] = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const known = lock.packages[`node_modules/${name}`] ?? lock.packages[`${path}/node_modules/${name}`];
      const platform = platformOf(name);
      if (known || !/^\d/.test(version) || !(platform.os || platform.cpu)) continue;
      lock.packages[`node_modules/${name}`] = { version, ...(entry.dev && { dev: true }), optional: true, ...platform };
      added.push(name);
    }
  }
  return added;
}

/** Asks the registry for the checksum of one version. Leaves the entry as it is where the registry gives none. */
async function addChecksum(path: string): Promise<void> {
  const entry = lock.packages[path];
  const args = ['view', `${nameAt(path)}@${entry?.version}`, 'dist.integrity'];
  const { stdout } = await promisify(execFile)('npm', args).catch(() => ({ stdout: '' }));
  const integrity = stdout.trim();
  if (!entry || !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)) return;
  // Beside the version, where npm writes it.
  const { version, ...rest } = entry;
  lock.packages[path] = { ...(version !== undefined && { version }), integrity, ...rest };
}

if (!process.argv.includes('--check')) {
  const added = addMissing();
  for (const path of withoutChecksum(lock)) await addChecksum(path);
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(added.length > 0 ? `added ${added.join(', ')}` : 'nothing was left out');
}
for (const path of withoutChecksum(lock)) {
  console.error(`no checksum in ${file}: ${path}; \`npm run lock\` asks the registry for it`);
  process.exitCode = 1;
}
