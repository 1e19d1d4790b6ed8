import { dirname, relative, sep } from 'node:path';
import type { Plugin } from 'rolldown';

/** The programs by the name of their file in a build: the service, and the thread that reads pages. */
const PROGRAMS = { server: 'src/server.ts', 'page-worker': 'src/upstream/web/page-worker.ts' };
/** Packages that load machine code, which lies beside them in node_modules. */
const WITH_MACHINE_CODE = [/^better-sqlite3($|\/)/, /^secp256k1($|\/)/, /^pg($|\/)/];

/** Bundles the programs of the project at `root` into files of `folder`. Throws when a module is missing. Needs the development dependencies. */
export async function bundle(root: string, folder: string): Promise<void> {
  const { rolldown } = await import('rolldown');
  const building = await rolldown({
    ...{ cwd: root, input: PROGRAMS, platform: 'node', external: WITH_MACHINE_CODE, logLevel: 'silent' },
    plugins: [embeddedNetworkFrom(root, folder), placesFrom(root, folder), inLatin1],
  });
  try {
    // Class names are kept, because errors take their name from their class.
    await building.write({
      dir: folder,
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
      if (!importer || !id.includes('/embedded/')) return null;
      const source = await this.resolve(id, importer, { skipSelf: true });
      return { id: pathFrom(folder, source?.id ?? `${root}/src/${id.slice(id.indexOf('embedded/'))}`), external: true };
    },
  };
}

/** Lets a module find the files beside its source: `import.meta` of a build names the build. */
function placesFrom(root: string, folder: string): Plugin {
  const programs = new Map(Object.entries(PROGRAMS).map(([name, source]) => [`${root}/${source}`, name]));
  return {
    name: 'places',
    transform(code, id) {
      if (!id.startsWith(`${root}/src/`) || !code.includes('import.meta')) return null;
      return code
        .replace(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g, (_, path: string) => {
          const name = programs.get(new URL(path, `file://${id}`).pathname);
          return name ? `new URL('./${name}.js', import.meta.BUILT)` : `new URL('${path}', import.meta.url)`;
        })
        .replaceAll('import.meta.url', `new URL('${pathFrom(folder, id)}', import.meta.BUILT).href`)
        .replaceAll('import.meta.dirname', `(import.meta.dirname + '/${relative(folder, dirname(id))}')`)
        .replaceAll('import.meta.BUILT', 'import.meta.url');
    },
  };
}

/** V8 keeps a source as long as its program runs: with one byte a character if all of them are Latin-1, else with two. */
const inLatin1: Plugin = {
  name: 'latin-1',
  generateBundle(_options, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replace(/[\u0100-\uffff]/g, escaped);
    }
  },
};

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

const pathFrom = (folder: string, file: string): string => relative(folder, file).split(sep).join('/');
