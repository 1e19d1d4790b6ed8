import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { allTexts } from '../../../src/store/db/sql.ts';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { createLedgerStore, createWaitingBytes } from '../../../src/store/payments.ts';
import type { PaymentChange } from '../../../src/store/ports/payments.ts';
import { openLedgerReports } from '../../../src/store/reports.ts';

// Prints every text that the ledger's subjects make while they load, as JSON. A process of its own has no others.

const STORE = join(import.meta.dirname, '../../../src/store');
for (const file of globSync('*.ts', { cwd: STORE })) await import(join(STORE, file));

async function never(): Promise<never> {
  return new Promise(() => {});
}

// A move's text is made for the columns that it sets.
const store = createLedgerStore(
  { read: async () => [], look: never, write: never, share: never, decide: never },
  createWaitingBytes(),
  { ping: never, close: never },
);
const BYTES = new Uint8Array();
const CHANGES: Required<PaymentChange> = {
  bootId: '',
  signature: BYTES,
  calldata: BYTES,
  checkedBlock: 0,
  payerHasCode: true,
  charged: 0n,
  transaction: BYTES,
  block: 0,
  reason: '',
  settlingAt: 0,
  endedAt: 0,
};
const single = Object.entries(CHANGES).map(([name, value]) => ({ [name]: value }));
for (const to of ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const)
  for (const change of [{}, CHANGES, ...single])
    for (const reply of [undefined, 'drop', { store: BYTES }, { keepUntil: 0 }] as const)
      void store.move('', [to], to, change, reply);

void store.listByState(['reserved', 'settling', 'unknown'], 1);

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
