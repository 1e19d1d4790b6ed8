import type { LedgerReports } from '../../../src/store/ports/reports.ts';
import { openLedgerReports, openPostgresReports, type PostgresReports } from '../../../src/store/reports.ts';
import { dataDirectory, existingDatabase } from './ledger-file.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** The place of a ledger: a directory on this machine, or a database. */
export type LedgerLocation = { readonly dataDir: string } | { readonly url: string };

/** The given directory, else the database of LEDGER_URL, else the service's data directory. */
export function locateLedger(dataDir: string | undefined): LedgerLocation {
  const url = process.env.LEDGER_URL;
  return dataDir === undefined && url ? { url: postgresUrl(url, 'LEDGER_URL') } : { dataDir: dataDirectory(dataDir) };
}

/** Checks the URL of a database, which was given under `name`. The error does not repeat the text, because it may hold a password. */
export function postgresUrl(text: string, name: string): string {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) throw new Error(`${name} is not a postgres:// URL`);
  return text;
}

/** Opens a ledger for reading. */
export function openReports(location: LedgerLocation): LedgerReports {
  return 'url' in location
    ? openDatabaseReports(location.url)
    : openLedgerReports(existingDatabase(location.dataDir, 'ledger.db'));
}

/** The reports of a ledger in a database. */
export function openDatabaseReports(url: string): PostgresReports {
  return openPostgresReports(url, CONNECT_TIMEOUT_MS);
}
