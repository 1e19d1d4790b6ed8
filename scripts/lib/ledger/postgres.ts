import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../../dev/child.ts';

const DEBIAN = '/usr/lib/postgresql';
const READY_MS = 30_000;
/** Short time-outs keep the tests of broken connections short. Everything else is PostgreSQL's default, `fsync` included. */
const SETTINGS = {
  max_connections: '200',
  unix_socket_directories: '',
  log_min_messages: 'fatal',
  max_wal_size: '4GB',
};

type NamedValues = Readonly<Record<string, string>>;

/** A separate PostgreSQL server that listens on this machine only. */
export interface Postgres {
  /** The postmaster's process id. */
  pid(): number;
  /** The postgres:// URL of one of its databases. */
  url(database: string): string;
  /** Creates an empty database, or a copy of another one that has no connections. */
  createDatabase(name: string, template?: string): Promise<void>;
  /** Stops the server in order and deletes its data. */
  stop(): Promise<void>;
  /** Starts the server again over the same data and port, also after a kill. */
  restart(): Promise<void>;
  /** Sends kill -9 to the postmaster. Nothing is flushed, and its child processes end when they notice. */
  kill(): Promise<void>;
}

/** The folder of the server's programs, or why it cannot be used. */
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

/**
 * Initialises and starts a server on a free port, with more environment variables and other settings. PostgreSQL refuses to run as root, so root starts
 * it as an unprivileged user.
 */
export async function startPostgres(env: NamedValues = {}, settings: NamedValues = {}): Promise<Postgres> {
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
    const all = { ...SETTINGS, ...settings, listen_addresses: '127.0.0.1', port: String(port) };
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const until = Date.now() + READY_MS;
    let log = '';
    // After a kill the server refuses to start while a child process of the old one still runs.
    while (server === null || server.exitCode !== null) {
      if (Date.now() > until) throw new Error(`postgres did not start in ${READY_MS / 1000} s: ${log}`);
      const options = { ...user, cwd: folder, env: { ...process.env, ...env } };
      const started = spawnServer(bin, ['-D', data, ...args], options, (text) => {
        log = text;
      });
      server = started;
      while (started.exitCode === null && Date.now() < until && !(await answers(url('postgres')))) {
        await new Promise((next) => setTimeout(next, 20));
      }
    }
    if (Date.now() > until) throw new Error(`postgres did not answer in ${READY_MS / 1000} s: ${log}`);
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
      // SIGINT ends it at once and in order. A smart shutdown would wait for its clients.
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

/** Creates the server's files. Deletes the folder when that fails. */
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

/** Starts the server. `onLog` gets the lines of its log. */
function spawnServer(bin: string, args: string[], options: SpawnOptions, onLog: (text: string) => void): ChildProcess {
  const started = spawn(join(bin, 'postgres'), args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  started.stderr?.on('data', (text) => onLog(String(text)));
  return started;
}

/** Creates an empty database, or a copy of another one that has no connections, over a URL of another database of the server. */
export async function createDatabase(url: string, name: string, template?: string): Promise<void> {
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

/** An unprivileged user: `postgres`, which Debian's package creates, else `nobody`. */
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
