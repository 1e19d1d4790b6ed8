import { readFileSync, writeFileSync } from 'node:fs';

// `npm run lock`: completes package-lock.json. When a registry mirror lacks the binaries of other platforms, npm leaves their entries out of the lock
// file, and then `npm ci` refuses it ("Missing: … from lock file"). This script adds the missing entry of each optional dependency, without its
// checksum. A platform that does not need the package skips it. Another platform installs it by its exact version.

interface Entry {
  version?: string;
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
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> };
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
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length > 0 ? `added ${added.join(', ')}` : 'nothing was left out');
