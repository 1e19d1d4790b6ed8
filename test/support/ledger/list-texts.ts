import { globSync } from 'node:fs';
import { join } from 'node:path';
import { allTexts } from '../../../src/store/db/sql.ts';

// Prints every text that the ledger's subjects make while they load, as JSON. A process of its own has no others.

const STORE = join(import.meta.dirname, '../../../src/store');
for (const file of globSync('*.ts', { cwd: STORE })) await import(join(STORE, file));
process.stdout.write(JSON.stringify(allTexts().map(({ text, followers, given }) => ({ text, followers, given }))));
