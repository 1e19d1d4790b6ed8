import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { formatUnits } from '../../../src/lib/units.ts';
import { type CopiedTable, copyLedger } from '../../../src/store/copy.ts';
import { ledgerPlace } from '../../../src/store/db/connections.ts';
import { holdLedger, markMoved, movedTo, moveMark } from '../../../src/store/ledger-lock.ts';
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
 * Copies a ledger from a file into an empty database, and prints what both hold. The file stays as it was. The last
 * step marks it as moved, where it has the name that a service opens: no service starts on it afterwards.
 * Throws while a service uses the file, and for everything that `copyLedger` refuses.
 */
export async function moveLedger({ from, url, nowMs, print, say }: Copying): Promise<void> {
  if (!existsSync(from)) throw new Error(`there is no ${from}`);
  const source = realpathSync(from);
  const lock = lockLedger(source);
  try {
    const before = movedTo(source);
    if (before !== null) say(`${basename(source)} was already copied to ${before}: serve from one of the two alone`);
    let last = '';
    const onProgress = (table: string, copied: number, total: number) => {
      const line = `${table}: ${Math.floor((copied / Math.max(total, 1)) * 10) * 10} % of ${total} rows`;
      if (line !== last) say(line);
      last = line;
    };
    const copied = await copyLedger({ source, url, connectTimeoutMs: CONNECT_TIMEOUT_MS, nowMs, onProgress });
    for (const line of textTable([['table', 'state', 'rows', 'sum'], ...copied.map(cellsOf)])) print(line);
    say('copied and checked: counts and sums of every table are the same on both sides');
    if (basename(source) === 'ledger.db') mark(source, ledgerPlace(url), nowMs);
    say(
      `from now on serve only from the database: a service on ${basename(from)} would sell again what is already sold`,
    );
  } finally {
    lock?.release();
  }
}

function mark(source: string, place: string, nowMs: number): void {
  try {
    markMoved(source, place, nowMs);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `all is copied, but ${moveMark(source)} could not be written (${why}): never start a service on ${source}`,
      { cause },
    );
  }
}

/** Takes the lock of the directory, which a service holds for its `ledger.db`. Null for a file in another place, which no service uses. */
function lockLedger(file: string): { release(): void } | null {
  const lock = join(dirname(file), 'ledger.lock');
  if (basename(file) !== 'ledger.db' && !existsSync(lock)) return null;
  try {
    return holdLedger(lock);
  } catch (cause) {
    throw new Error(
      `a service is running on ${dirname(file)}: stop it first, because the copy would lack its next sales`,
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
  if (table === 'usdc_payments' || table.startsWith('channel')) return `${formatUnits(sum, 6)} USDC`;
  if (table === 'relayer_spending') return `${formatUnits(sum, 18)} USDC`;
  return table.startsWith('lightning_facilitator') ? `${sum} claims` : `${sum} msat`;
}
