import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, COMMAND, SERVICE } from '../build/build.ts';
import { nameAt, packagesOf, readLock } from './lock-file.ts';

// The tarball of `npm pack`: the two bundles, the files that the service reads beside its sources, and as dependencies
// the packages alone that a bundle cannot hold.

/** Packages with machine code, the one that `pg` is, and the one whose files the pages send. */
const NOT_BUNDLED = ['better-sqlite3', 'libsql', 'pg', 'secp256k1', 'uplot'];
/** Where package.json waits while its short form is packed. */
const WHOLE = 'dist/package.json.whole';
const LICENCES = 'dist/LICENSES.txt';
/** `pay`, `wallet` and `mcp` run on it. */
const NODE = '>=20.12';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly [more: string]: unknown;
}

/** Builds both products, writes the licences of what they hold, and replaces package.json by the form that ships. */
export async function beforePack(root: string): Promise<void> {
  afterPack(root);
  await build(root);
  await build(root, COMMAND);
  writeFileSync(join(root, LICENCES), licenceTexts(root));
  const file = join(root, 'package.json');
  const text = readFileSync(file, 'utf8');
  const shipped = shippedManifest(JSON.parse(text) as Manifest, filesOf(root));
  mkdirSync(join(root, 'dist'), { recursive: true });
  writeFileSync(join(root, WHOLE), text);
  replace(file, `${JSON.stringify(shipped, null, 2)}\n`);
}

/** Puts package.json back. Does nothing where it is whole. */
export function afterPack(root: string): void {
  const whole = join(root, WHOLE);
  if (!existsSync(whole)) return;
  replace(join(root, 'package.json'), readFileSync(whole, 'utf8'));
  rmSync(whole);
}

/** In one step: a reader finds the one form or the other. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/** package.json as it ships. Throws when a package that is not bundled is no dependency. */
export function shippedManifest(manifest: Manifest, files: readonly string[]): object {
  const { name, version, private: own, description, license, type, bin, dependencies } = manifest;
  const kept = NOT_BUNDLED.map((one): [string, string] => {
    const exact = dependencies[one];
    if (exact === undefined || !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(exact))
      throw new Error(`${one} is no exact dependency`);
    return [one, exact];
  });
  const common = { name, version, private: own, description, license, type, bin, engines: { node: NODE } };
  return { ...common, files, dependencies: Object.fromEntries(kept) };
}

/** The builds of now, without earlier ones that lie beside them, and what the service reads beside its sources. */
function filesOf(root: string): string[] {
  const built = [SERVICE, COMMAND].flatMap(({ folder, programs }) =>
    Object.keys(programs).flatMap((program) => {
      const loader = `${folder}/${program}.js`;
      const [name = ''] = /[0-9a-f]{16}/.exec(readFileSync(join(root, loader), 'utf8')) ?? [];
      return [loader, `${folder}/${name}`];
    }),
  );
  const beside = globSync(['src/**/*.sql', 'src/http/skill.md', 'src/pages/assets/*.{js,css,svg,ico,png}'], {
    cwd: root,
  });
  return [...built, LICENCES, ...beside.map((file) => file.replaceAll('\\', '/')).sort()];
}

const LICENCE_FILE = /^(licen[cs]e|copying|notice)([.-].*)?$/i;

/** The licence texts of every package that ships, because a bundle leaves its comments out. */
function licenceTexts(root: string): string {
  const { packages } = readLock(join(root, 'package-lock.json'));
  const ships = new Set(packagesOf({ packages }, 'ships').map(({ name, version }) => `${name}@${version}`));
  const texts = new Map<string, string[]>();
  for (const [path, { version }] of Object.entries(packages)) {
    const folder = join(root, path);
    const name = `${nameAt(path)}@${version}`;
    if (path === '' || !ships.has(name) || !existsSync(folder)) continue;
    for (const file of readdirSync(folder).filter((one) => LICENCE_FILE.test(one))) {
      const text = readFileSync(join(folder, file), 'utf8').trim();
      texts.set(text, [...(texts.get(text) ?? []), name]);
    }
  }
  return [...texts]
    .map(([text, names]) => `${[...new Set(names)].join(', ')}\n\n${text}\n`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}
