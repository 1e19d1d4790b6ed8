import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { allTexts } from '../../../src/store/db/sql.ts';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { openLedgerReports } from '../../../src/store/reports.ts';
import { makeEveryMove } from './every-move.ts';

// Prints every text that the ledger's subjects make while they load, as JSON. A process of its own has no others.

const STORE = join(import.meta.dirname, '../../../src/store');
for (const file of globSync('*.ts', { cwd: STORE })) await import(join(STORE, file));

makeEveryMove();

// A report's texts are made for what its ledger has.
const file = join(mkdtempSync(join(tmpdir(), 'percall-texts-')), 'ledger.db');
openLedgerDatabase(file).close();
const reports = openLedgerReports(file);
await reports.status();
await Promise.all([reports.list(null, 1), reports.list('settled', 1)]);
for await (const _ of reports.income(0, 1));
await reports.close();
rmSync(dirname(file), { recursive: true });

process.stdout.write(JSON.stringify(allTexts().map(({ text, followers, given }) => ({ text, followers, given }))));
