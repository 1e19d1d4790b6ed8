import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Debian's programs that read the files of docs/deploy, and the package of each. */
const PACKAGES = {
  prometheus: 'prometheus',
  promtool: 'prometheus',
  haproxy: 'haproxy',
  'systemd-analyze': 'systemd',
} as const;

export type DeployProgram = keyof typeof PACKAGES;

/** Root's programs may be missing from PATH. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];

const pathOf = (program: DeployProgram): string | undefined =>
  FOLDERS.map((folder) => join(folder, program)).find((path) => existsSync(path));

/**
 * Why these programs cannot be run; null where they can. With `SLOW=1` root installs what is missing, and an installation that fails throws. The names of
 * skipped tests have the reason.
 */
export function programsMissing(...programs: readonly DeployProgram[]): string | null {
  const lacking = () => [...new Set(programs.filter((program) => !pathOf(program)).map((name) => PACKAGES[name]))];
  if (lacking().length > 0 && process.env.SLOW && process.getuid?.() === 0) install(lacking());
  const packages = lacking();
  return packages.length === 0 ? null : `missing: apt-get install ${packages.join(' ')}`;
}

/** Two test files may install at once, and apt does not wait for itself. */
function install(packages: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args: readonly string[]) =>
    execFileSync('flock', [join(tmpdir(), 'percall-apt.lock'), 'apt-get', ...args], { env, stdio: 'ignore' });
  apt('update', '-qq');
  apt('install', '-qq', '--yes', '--no-install-recommends', ...packages);
}

/** The path of a program that is there. */
export function programPath(program: DeployProgram): string {
  const path = pathOf(program);
  if (path === undefined) throw new Error(`${program} is not installed`);
  return path;
}

/** Runs a program to its end. */
export function runProgram(
  program: DeployProgram,
  args: readonly string[],
  cwd?: string,
): Promise<{ code: number; output: string }> {
  const path = programPath(program);
  return new Promise((resolve) => {
    execFile(path, args, { ...(cwd !== undefined && { cwd }) }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` }),
    );
  });
}
