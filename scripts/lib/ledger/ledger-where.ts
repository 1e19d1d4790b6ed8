import type { LedgerReports } from '../../../src/store/ports/reports.ts';
import { openPostgresReports, type PostgresReports } from '../../../src/store/postgres/ledger-reports.ts';
import { openLedgerReports } from '../../../src/store/sqlite/ledger-reports.ts';
import { dataDirectory, existingDatabase } from './ledger-file.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** A ledger as a command finds it: in a file of this machine, or in a database. */
export type LedgerWhere = { readonly dataDir: string } | { readonly url: string };

/** The directory that was asked for, else the database of LEDGER_URL, else the directory in which the service keeps its data. */
export function whereIsLedger(dataDir: string | undefined): LedgerWhere {
  const url = process.env.LEDGER_URL;
  return dataDir === undefined && url ? { url: postgresUrl(url, 'LEDGER_URL') } : { dataDir: dataDirectory(dataDir) };
}

/** A database's URL as it was given under `name`; throws for any other text, without repeating it: it may hold a password. */
export function postgresUrl(text: string, name: string): string {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) throw new Error(`${name} is not a postgres:// URL`);
  return text;
}

/** Opens a ledger for looking, wherever it is. */
export function openReports(where: LedgerWhere): LedgerReports {
  return 'url' in where
    ? openDatabaseReports(where.url)
    : openLedgerReports(existingDatabase(where.dataDir, 'ledger.db'));
}

/** The reports of a ledger in a database. */
export function openDatabaseReports(url: string): PostgresReports {
  return openPostgresReports({ url, connectTimeoutMs: CONNECT_TIMEOUT_MS });
}
