import { dirname, join, relative, sep } from 'node:path';
import type { Plugin } from 'rolldown';

/** Sources of programs by the names of their files in a build. */
export type Programs = Readonly<Record<string, string>>;

/** The thread that reads pages: a program that each build has, because the service starts it by its file. */
const THREADS: Programs = { 'page-worker': 'src/upstream/web/page-worker.ts' };
/** Packages that stay in node_modules: the first three load machine code that lies beside them, and `pg` looks for an optional package of that kind. */
const LEFT_OUT = [/^better-sqlite3($|\/)/, /^libsql($|\/)/, /^secp256k1($|\/)/, /^pg($|\/)/];

/** How a module names a part of the embedded network. */
const DEV = /^(\.\.\/)+dev\//;

/**
 * Bundles programs of the project at `root` (an absolute path) into files of `folder`. The files need the sources, package.json and node_modules where
 * they were: they read migrations and pages there. Throws when a file or a package is missing. Needs the development dependencies.
 */
export async function bundle(root: string, folder: string, programs: Programs): Promise<void> {
  const { rolldown } = await import('rolldown');
  const input = { ...programs, ...THREADS };
  const building = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    external: LEFT_OUT,
    onLog(_level, log) {
      // A package that is not installed is only worth a warning to rolldown. Its other warnings are about the code of packages.
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    },
    plugins: [embeddedNetworkFrom(root, folder), sourcePlaces(root, folder), inLatin1],
  });
  try {
    await building.write({
      dir: folder,
      // Two modules may name a class alike, and one is renamed. Errors take their name from their class, so the names are kept.
      keepNames: true,
      comments: false,
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
    });
  } finally {
    await building.close();
  }
}

/** Leaves the embedded network out: only development has it, and it is loaded from its sources. */
function embeddedNetworkFrom(root: string, folder: string): Plugin {
  return {
    name: 'embedded-network',
    async resolveId(id, importer) {
      if (!importer || !DEV.test(id)) return null;
      const source = await this.resolve(id, importer, { skipSelf: true });
      const file = source?.id ?? join(root, id.replace(DEV, 'dev/'));
      return { id: pathFrom(folder, file), external: true };
    },
  };
}

/**
 * Lets a module find the files beside its source, although `import.meta` of a build names the build: `import.meta.url` and `.dirname` become the source's,
 * and `new URL` of a thread's source becomes the built file.
 */
function sourcePlaces(root: string, folder: string): Plugin {
  const threads = new Map(Object.entries(THREADS).map(([name, source]) => [join(root, source), name]));
  const [own, packages] = [root + sep, join(root, 'node_modules') + sep];
  return {
    name: 'source-places',
    transform(code, id) {
      if (!id.startsWith(own) || id.startsWith(packages) || !code.includes('import.meta')) return null;
      const source = JSON.stringify(pathFrom(folder, id));
      const parent = JSON.stringify(`/${pathFrom(folder, dirname(id))}`);
      return code.replace(
        /new URL\('(\.[^']+\.ts)', import\.meta\.url\)|import\.meta\.(\w+)/g,
        (found: string, path: string | undefined, property: string | undefined) => {
          const name = path && threads.get(join(dirname(id), path));
          if (name) return `new URL('./${name}.js', import.meta.url)`;
          if (path) return `new URL('${path}', new URL(${source}, import.meta.url))`;
          if (property === 'url') return `new URL(${source}, import.meta.url).href`;
          if (property === 'dirname') return `(import.meta.dirname + ${parent})`;
          throw new Error(`${id}: a build has no ${found}`);
        },
      );
    },
  };
}

/** V8 keeps a source as long as its program runs: with one byte a character if all of them are Latin-1, else with two. */
const inLatin1: Plugin = {
  name: 'latin-1',
  generateBundle(_options, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/(\\*)([\u0100-\uffff])/g, escaped);
    }
  },
};

/** A character as JavaScript writes it in a text, after the backslashes before it. Behind an odd number of them it would mean something else. */
function escaped(_: string, backslashes: string, unit: string): string {
  if (backslashes.length % 2 === 1) throw new Error(`a backslash before ${unit} has no meaning; write ${unit} alone`);
  return `${backslashes}\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const pathFrom = (folder: string, file: string): string => relative(folder, file).split(sep).join('/');
