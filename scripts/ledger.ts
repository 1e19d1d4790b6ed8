import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../src/lib/clock.ts';
import type { LedgerReports } from '../src/store/ports/reports.ts';
import { type LedgerCommand, readLedgerCommand } from './lib/ledger/ledger-command.ts';
import { incomeCsv } from './lib/ledger/ledger-csv.ts';
import { dataDirectory, existingDatabase } from './lib/ledger/ledger-file.ts';
import { type LedgerLocation, locateLedger, openReports, postgresUrl } from './lib/ledger/ledger-location.ts';
import { listJson, listText, statusJson, statusText } from './lib/ledger/ledger-text.ts';
import { runOperatorCommand, say, UsageError } from './lib/ledger/operator-command.ts';
import type { StoppedService } from './lib/ledger/stopped-service.ts';

const USAGE = `Shows the ledger and its notes, also while the service runs, brings open payments to their final state, and claims from payment channels.

  npm run -s ledger -- status [--json]
  npm run -s ledger -- list [--state STATE] [--limit N] [--json]
  npm run -s ledger -- export --csv [--from DATE] [--to DATE]
  npm run -s ledger -- reconcile [--timeout SECONDS]
  npm run -s ledger -- claim [--timeout SECONDS]
  npm run -s ledger -- copy [--from FILE] [--to URL]
  npm run -s ledger -- providers
  npm run -s ledger -- trust HOST
  npm run -s ledger -- accept-mismatch

  status       payments and sums by rail and state, the oldest open payment, kept replies
  list         USDC payments with their routes, newest first (at most 50)
    --state    one of reserved, settling, unknown, settled, failed
  export       settled payments, and Lightning claims that the ledger still holds, oldest first, with their routes
    --from     first day, YYYY-MM-DD in UTC
    --to       last day, included
  reconcile    looks up each open payment on the chain and settles it: it may send transactions, with the service's own configuration.
               The running service does the same by itself, so this command refuses to run beside it
    --timeout  how long to wait for the chain (default 120 s)
  claim        claims everything that was charged to payment channels, however little, and prints what was claimed, written off and set aside.
               It sends transactions, and settles open payments as reconcile does. The running service claims by itself, so this command
               refuses to run beside it
    --timeout  how long to wait for the chain (default 120 s)
  copy         copies a ledger from a file into an empty PostgreSQL database, in one transaction, and compares counts and sums;
               no service may run on either
    --from     the file (default: ledger.db in the data directory)
    --to       postgres://… (default: LEDGER_URL, which hides the password from other users of this machine)
  providers    RPC providers that contradicted others: what they said, what the others said, and until when this counts
  trust        ends that for a host before its time; the running service sees it within seconds
  accept-mismatch  accepts the money that the ledger has and the chain lacks, and prints it, so that it stops no rail any more
  --data-dir   the directory of ledger.db (default: the database of LEDGER_URL, from the environment or .env; else DATA_DIR, else data)
  --help       this text

The answer goes to standard output, everything else to standard error.
Exit code: 0 done, 1 failed or something is still open, 2 wrong usage.`;

const print = (line: string): void => console.log(line);

type BesideName = 'providers' | 'trust' | 'accept-mismatch';
type ReadCommand = Exclude<LedgerCommand, { name: 'reconcile' | 'claim' | 'copy' | BesideName }>;

async function show(reports: LedgerReports, command: ReadCommand): Promise<void> {
  if (command.name === 'export') {
    const csv = incomeCsv(reports.income(command.from, command.to));
    return pipeline(Readable.from(csv), process.stdout, { end: false });
  }
  const now = systemClock.nowMs();
  if (command.name === 'status') {
    const status = await reports.status();
    return print(command.json ? JSON.stringify(statusJson(status, now)) : statusText(status, now).join('\n'));
  }
  const payments = await reports.list(command.state, command.limit);
  print(command.json ? JSON.stringify(listJson(payments)) : listText(payments).join('\n'));
}

await runOperatorCommand(USAGE, async () => {
  const command = readLedgerCommand(process.argv.slice(2));
  if (command === null) {
    print(USAGE);
    return 0;
  }
  if (command.name === 'copy') return copy(command);
  const location = locateLedger(command.dataDir);
  if (command.name === 'reconcile' || command.name === 'claim') {
    const service = { env: process.env, location, timeoutMs: command.timeoutMs, print, say };
    return (await workFor(command.name)(service)) ? 0 : 1;
  }
  if (command.name === 'providers' || command.name === 'trust' || command.name === 'accept-mismatch') {
    await workBeside(command, location);
    return 0;
  }
  const reports = openReports(location);
  try {
    await show(reports, command);
    return 0;
  } finally {
    await reports.close();
  }
});

/** The commands that work in the service's place. Imported on demand: they load half of the service, and the others should start quickly. */
function workFor(name: 'reconcile' | 'claim') {
  return async (service: StoppedService): Promise<boolean> => {
    if (name === 'claim') return (await import('./lib/ledger/ledger-claim.ts')).claimChannels(service);
    return (await import('./lib/ledger/ledger-reconcile.ts')).reconcileLedger(service);
  };
}

/** The commands that use the stores beside the service that may run. */
async function workBeside(command: Extract<LedgerCommand, { name: BesideName }>, location: LedgerLocation) {
  const { acceptMismatch, listProviders, trustProvider } = await import('./lib/ledger/beside-service.ts');
  const beside = { location, clock: systemClock, print };
  if (command.name === 'trust') return trustProvider(beside, command.host);
  return command.name === 'providers' ? listProviders(beside) : acceptMismatch(beside);
}

async function copy({ dataDir, from, to }: Extract<LedgerCommand, { name: 'copy' }>): Promise<number> {
  const url = to ?? process.env.LEDGER_URL;
  if (!url) throw new UsageError('copy needs --to or LEDGER_URL');
  const { moveLedger } = await import('./lib/ledger/ledger-copy.ts');
  const file = from === undefined ? existingDatabase(dataDirectory(dataDir), 'ledger.db') : resolve(from);
  const target = postgresUrl(url, to === undefined ? 'LEDGER_URL' : '--to');
  await moveLedger({ from: file, url: target, nowMs: systemClock.nowMs(), print, say });
  return 0;
}
