import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { formatUnits } from '../../../src/lib/units.ts';
import { type CopiedTable, copyLedger } from '../../../src/store/postgres/copy-ledger.ts';
import { holdLedger } from '../../../src/store/sqlite/ledger-lock.ts';
import { textTable } from '../text-table.ts';

const CONNECT_TIMEOUT_MS = 10_000;

interface Copying {
  readonly from: string;
  readonly url: string;
  readonly nowMs: number;
  readonly print: (line: string) => void;
  readonly say: (line: string) => void;
}

/**
 * Moves a ledger from a file into an empty database, and prints what both hold. Throws while a service holds the file, and for everything
 * that `copyLedger` refuses; the file is left as it was.
 */
export async function moveLedger({ from, url, nowMs, print, say }: Copying): Promise<void> {
  if (!existsSync(from)) throw new Error(`there is no ${from}`);
  const source = realpathSync(from);
  const lock = hold(source);
  try {
    let last = '';
    const onProgress = (table: string, copied: number, total: number) => {
      const line = `${table}: ${Math.floor((copied / Math.max(total, 1)) * 10) * 10} % of ${total} rows`;
      if (line !== last) say(line);
      last = line;
    };
    const copied = await copyLedger({ source, url, connectTimeoutMs: CONNECT_TIMEOUT_MS, nowMs, onProgress });
    for (const line of textTable([['table', 'state', 'rows', 'sum'], ...copied.map(cellsOf)])) print(line);
    say('copied and checked: counts and sums of every table are the same on both sides');
    say(`from here on serve from the database alone: what ${basename(from)} would sell again is sold already`);
  } finally {
    lock?.release();
  }
}

/** A service holds the directory of its `ledger.db`; a copy elsewhere has nobody to hold it. */
function hold(file: string): { release(): void } | null {
  const lock = join(dirname(file), 'ledger.lock');
  if (basename(file) !== 'ledger.db' && !existsSync(lock)) return null;
  try {
    return holdLedger(lock);
  } catch (cause) {
    throw new Error(
      `a service is running on ${dirname(file)}: stop it first, what it sold meanwhile would be missing`,
      {
        cause,
      },
    );
  }
}

function cellsOf({ table, state, rows, sum }: CopiedTable): string[] {
  return [table, state ?? '-', String(rows), sum === null ? '-' : sumText(table, sum)];
}

function sumText(table: string, sum: bigint): string {
  if (table === 'usdc_payments') return `${formatUnits(sum, 6)} USDC`;
  if (table === 'relayer_spending') return `${formatUnits(sum, 18)} USDC`;
  return table.startsWith('lightning_facilitator') ? `${sum} claims` : `${sum} msat`;
}
