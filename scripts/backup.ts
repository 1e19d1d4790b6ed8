import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { backUpDatabase } from '../src/store/backup.ts';
import { dataDirectory, existingDatabase } from './lib/ledger-file.ts';
import { runOperatorCommand, say, UsageError } from './lib/operator-command.ts';

const USAGE = `Copies the ledger while the service runs: consistent, checked, readable by its owner alone.

  npm run -s backup -- [--to DIR] [--with-chain]

  --to DIR      where ledger-YYYYMMDDTHHMMSSZ.db is put (default: backups in the data directory; another disk is better)
  --with-chain  also chain.db, which the service can read from the chain again
  --data-dir    where ledger.db is (default: DATA_DIR from the environment or .env, else data)
  --help        this text

Prints the path of each copy on standard output; overwrites nothing. To restore, stop the service, put the copy in place of ledger.db,
remove ledger.db-wal and ledger.db-shm, and start the service.
Exit code: 0 done, 1 failed, 2 wrong usage.`;

function readOptions() {
  try {
    return parseArgs({
      options: {
        to: { type: 'string' },
        'with-chain': { type: 'boolean', default: false },
        'data-dir': { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** UTC, without characters that a file's name may not have: 20260131T235959Z. */
const stamp = (): string => new Date().toISOString().replace(/[-:]|\.\d+/g, '');

async function backUp(name: 'ledger' | 'chain', dataDir: string, directory: string): Promise<void> {
  const source = existingDatabase(dataDir, `${name}.db`);
  const target = join(directory, `${name}-${stamp()}.db`);
  let told = -1;
  const onProgress = (copied: number, total: number) => {
    const tenth = Math.floor((copied / Math.max(total, 1)) * 10);
    if (tenth !== told) say(`${name}.db: ${tenth * 10} % of ${total} pages`);
    told = tenth;
  };
  const rows = await backUpDatabase({ source, target, onProgress });
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);
  say(`${name}.db: copied and checked, ${total} rows in ${Object.keys(rows).length} tables`);
  console.log(target);
}

await runOperatorCommand(USAGE, async () => {
  const options = readOptions();
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const dataDir = dataDirectory(options['data-dir']);
  const directory = options.to === undefined ? join(dataDir, 'backups') : resolve(options.to);
  await backUp('ledger', dataDir, directory);
  if (options['with-chain']) await backUp('chain', dataDir, directory);
  return 0;
});
