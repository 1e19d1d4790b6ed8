import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../../src/embedded/free-port.ts';

const DEBIAN = '/usr/lib/postgresql';
const READY_MS = 30_000;
/** Short times so that a test of a broken connection is short too; everything else is PostgreSQL's default, `fsync` above all. */
const SETTINGS = {
  max_connections: '200',
  unix_socket_directories: '',
  log_min_messages: 'fatal',
  max_wal_size: '4GB',
};

/** A PostgreSQL server of its own, on this machine alone. */
export interface Postgres {
  /** Of the postmaster. */
  pid(): number;
  /** postgres://… of one of its databases. */
  url(database: string): string;
  /** Makes an empty database, or a copy of another one, which nobody may be connected to. */
  createDatabase(name: string, template?: string): Promise<void>;
  /** Ends it in order and takes its data away. */
  stop(): Promise<void>;
  /** Starts it again over the same data and port, after a kill too. */
  restart(): Promise<void>;
  /** kill -9 of the postmaster: nothing is flushed, and its children end as soon as they notice. */
  kill(): Promise<void>;
}

/** Where the server's programs are, or why it cannot be used. */
export function findPostgres(): { readonly bin: string } | { readonly missing: string } {
  for (const version of listed(DEBIAN).sort((a, b) => Number(b) - Number(a))) {
    const bin = join(DEBIAN, version, 'bin');
    if (existsSync(join(bin, 'initdb'))) return { bin };
  }
  const onPath = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, 'initdb')));
  return onPath
    ? { bin: onPath }
    : { missing: `no initdb under ${DEBIAN} or on the PATH (Debian: apt-get install postgresql)` };
}

/** Initialises and starts a server on a free port; it refuses to run as root, so there it runs as a user without rights. */
export async function startPostgres(): Promise<Postgres> {
  const found = findPostgres();
  if ('missing' in found) throw new Error(found.missing);
  const { bin } = found;
  const user = process.getuid?.() === 0 ? unprivileged() : null;
  const folder = mkdtempSync(join(tmpdir(), 'percall-postgres-'));
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const port = await freePort();
  initialise(bin, data, folder, user);
  const url = (database: string) => `postgres://percall@127.0.0.1:${port}/${database}`;
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    const settings = { ...SETTINGS, listen_addresses: '127.0.0.1', port: String(port) };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const until = Date.now() + READY_MS;
    let said = '';
    // After a kill it refuses to start while a child of the dead one still works.
    while (server === null || server.exitCode !== null) {
      if (Date.now() > until) throw new Error(`postgres did not start in ${READY_MS / 1000} s: ${said}`);
      const options = { ...user, cwd: folder };
      const started = spawnServer(bin, ['-D', data, ...args], options, (text) => {
        said = text;
      });
      server = started;
      while (started.exitCode === null && Date.now() < until && !(await answers(url('postgres')))) {
        await new Promise((next) => setTimeout(next, 20));
      }
    }
    if (Date.now() > until) throw new Error(`postgres did not answer in ${READY_MS / 1000} s: ${said}`);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = server;
    server = null;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const gone = once(ending, 'exit');
    ending.kill(signal);
    await gone;
  }

  await start();
  return {
    pid: () => server?.pid ?? 0,
    url,
    createDatabase: (name, template) => createDatabase(url('postgres'), name, template),
    stop: async () => {
      // Ends it at once and in order; a smart shutdown would wait for its clients.
      await end('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
    restart: async () => {
      await end('SIGINT');
      await start();
    },
    kill: () => end('SIGKILL'),
  };
}

/** Makes the server's files; takes the folder away where that fails. */
function initialise(bin: string, data: string, folder: string, user: { uid: number; gid: number } | null): void {
  const options = ['--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  try {
    execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'percall', ...options], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** `onSaid` hears what the server writes about itself. */
function spawnServer(bin: string, args: string[], options: SpawnOptions, onSaid: (text: string) => void): ChildProcess {
  const started = spawn(join(bin, 'postgres'), args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  started.stderr?.on('data', (text) => onSaid(String(text)));
  return started;
}

async function createDatabase(url: string, name: string, template: string | undefined): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template}`}`);
  await client.end();
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 1000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}

/** Debian's package brings the user `postgres`; anybody but root will do. */
function unprivileged(): { uid: number; gid: number } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (!user) throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
