import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { backUpDatabase } from '../src/store/backup.ts';
import { replaceChainCopy } from './lib/ledger/chain-replica.ts';
import { dataDirectory, existingDatabase } from './lib/ledger/ledger-file.ts';
import { runOperatorCommand, say, UsageError } from './lib/ledger/operator-command.ts';

const USAGE = `Copies the ledger while the service runs: consistent, checked, readable by its owner alone.

  npm run -s backup -- [--to DIR] [--with-chain]
  npm run -s backup -- --chain --to DIR [--every SECONDS]

  --to DIR      the directory for ledger-YYYYMMDDTHHMMSSZ.db (default: backups in the data directory; another disk is better)
  --with-chain  also chain.db, which the service can read from the chain again
  --chain       chain.db alone, as DIR/chain.db, for instances that read it with CHAIN_DB_URL: it replaces the copy before in one step
  --every N     makes another copy every so many seconds, until it is stopped
  --data-dir    the directory of ledger.db (default: DATA_DIR from the environment or .env, else data)
  --help        this text

Prints the path of each copy on standard output. Overwrites no file, except the last copy with --chain. To restore, stop the service, put the copy in place of ledger.db,
remove ledger.db-wal and ledger.db-shm, and start the service.
A ledger on PostgreSQL (LEDGER_URL) is not copied: the command names PostgreSQL's own tools and ends with 1.
Exit code: 0 done, 1 failed, 2 wrong usage.`;

const ON_POSTGRES = `LEDGER_URL is set: the ledger is in PostgreSQL, which has its own tools:
  pg_dump --format=custom --file=ledger.dump "$LEDGER_URL"     a consistent copy while instances run; pg_restore restores it
  pg_basebackup and an archive of the write-ahead log          restore any moment, so that no acknowledged claim is lost
With --data-dir the ledger.db of a directory is copied anyway; with --chain, the chain's data.`;
const MAX_EVERY_SECONDS = 86_400;

function readOptions() {
  try {
    return parseArgs({
      options: {
        to: { type: 'string' },
        'with-chain': { type: 'boolean', default: false },
        chain: { type: 'boolean', default: false },
        every: { type: 'string' },
        'data-dir': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** The time in UTC, without characters that file names must not have: 20260131T235959Z. */
const stamp = (): string => new Date().toISOString().replace(/[-:]|\.\d+/g, '');

async function backUp(name: 'ledger' | 'chain', dataDir: string, directory: string): Promise<void> {
  const source = existingDatabase(dataDir, `${name}.db`);
  const target = join(directory, `${name}-${stamp()}.db`);
  let lastTenth = -1;
  const onProgress = (copied: number, total: number) => {
    const tenth = Math.floor((copied / Math.max(total, 1)) * 10);
    if (tenth !== lastTenth) say(`${name}.db: ${tenth * 10} % of ${total} pages`);
    lastTenth = tenth;
  };
  const rows = await backUpDatabase(source, target, onProgress);
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);
  say(`${name}.db: copied and checked, ${total} rows in ${Object.keys(rows).length} tables`);
  console.log(target);
}

/**
 * Copies the chain data for readers, and repeats it at the given interval until the process is stopped. A failed copy is logged, and the next one
 * follows at its time.
 */
async function copyChain(dataDir: string, directory: string, everySeconds: number | null): Promise<number> {
  const source = existingDatabase(dataDir, 'chain.db');
  const copy = async () => {
    const { file, rows } = await replaceChainCopy(source, directory);
    say(`chain.db: copied and checked, ${rows} rows`);
    console.log(file);
  };
  await copy();
  if (everySeconds === null) return 0;
  const stopped = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT']) void once(process, signal).then(() => stopped.abort());
  while (!stopped.signal.aborted) {
    await delay(everySeconds * 1000, undefined, { signal: stopped.signal }).catch(() => {});
    if (!stopped.signal.aborted) await copy().catch((error: unknown) => say(`chain.db: not copied: ${String(error)}`));
  }
  return 0;
}

function readEvery(text: string | undefined): number | null {
  if (text === undefined) return null;
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > MAX_EVERY_SECONDS)
    throw new UsageError(`--every is a whole number of seconds from 1 to ${MAX_EVERY_SECONDS}`);
  return seconds;
}

await runOperatorCommand(USAGE, async () => {
  const options = readOptions();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const dataDir = dataDirectory(options['data-dir']);
  const every = readEvery(options.every);
  if (options.chain) {
    if (options.to === undefined)
      throw new UsageError('--chain needs --to: the directory from which the other instances read');
    if (resolve(options.to) === dataDir)
      throw new UsageError('--to is the data directory, whose chain.db the service writes');
    return copyChain(dataDir, resolve(options.to), every);
  }
  if (every !== null) throw new UsageError('--every goes with --chain');
  if (process.env.LEDGER_URL && options['data-dir'] === undefined) {
    say(ON_POSTGRES);
    return 1;
  }
  const directory = options.to === undefined ? join(dataDir, 'backups') : resolve(options.to);
  await backUp('ledger', dataDir, directory);
  if (options['with-chain']) await backUp('chain', dataDir, directory);
  return 0;
});
