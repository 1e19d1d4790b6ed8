import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

/** Third parties' kits and clients, with exact versions and checksums. Few runs need them: they are no dependencies. */
const LISTED = new URL('../../test/kits/', import.meta.url).pathname;
/** Where they are installed: outside of what tests and checks read. `data` is not under version control. */
const INSTALLED = new URL('../../data/kits/', import.meta.url).pathname;
/** npm writes it when it has installed everything. */
const DONE = join(INSTALLED, 'node_modules/.package-lock.json');
const FILES = ['package.json', 'package-lock.json', '.npmrc'];
/** No package's own code runs at its installation: one of them would report it to its maker. */
const NPM_CI = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1'];
/** npm's own words for a registry that does not answer. */
const UNREACHABLE = /code (ENOTFOUND|EAI_AGAIN|ECONN\w+|E\w*UNREACH|ETIMEDOUT|ENOTCACHED|ERR_SOCKET_TIMEOUT|E5\d\d)/;

/**
 * Installs what test/kits lists, once, and returns null; or says that the registry does not answer. Throws for anything
 * else, such as a wrong checksum.
 */
export async function installKits(): Promise<string | null> {
  if (isInstalled()) return null;
  mkdirSync(INSTALLED, { recursive: true });
  rmSync(DONE, { force: true });
  for (const file of FILES) cpSync(join(LISTED, file), join(INSTALLED, file));
  try {
    await promisify(execFile)('npm', NPM_CI, { cwd: INSTALLED });
    return null;
  } catch (error) {
    if (UNREACHABLE.test(String((error as { stderr?: string }).stderr))) return 'the registry does not answer';
    throw error;
  }
}

function isInstalled(): boolean {
  const [here, listed] = [INSTALLED, LISTED].map((folder) => join(folder, 'package-lock.json'));
  return existsSync(DONE) && readFileSync(String(here), 'utf8') === readFileSync(String(listed), 'utf8');
}

/** The installed version of a package of test/kits; null when it is not listed. */
export function versionOfKit(name: string): string | null {
  const { dependencies } = JSON.parse(readFileSync(join(LISTED, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return dependencies[name] ?? null;
}

/** The path of a program that an installed kit brings. */
export const programOfKit = (name: string): string => join(INSTALLED, 'node_modules', name);

/** Imports an installed package of test/kits. */
export const importKit = (name: string): Promise<unknown> =>
  import(pathToFileURL(createRequire(INSTALLED).resolve(name)).href);
