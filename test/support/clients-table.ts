import type { Outcome } from '../../scripts/clients/judge.ts';
import { renderTable } from '../../scripts/clients/table.ts';
import { readText } from './documents.ts';

/** What differs in each run: the start of an identifier. */
const plain = (line: string) => line.replaceAll(/ (?:0x)?[0-9a-f-]{8,12}…/g, ' ID…').trim();

/** The lines of docs/clients.md, without what differs in each run. */
export const documentedClients: readonly string[] = readText('docs/clients.md').split('\n').map(plain);

/** The rows of a client's outcomes, and as many lines of docs/clients.md from the first of them on. */
export function documentedRows(outcomes: readonly Outcome[]): { rows: string[]; documented: readonly string[] } {
  const rows = renderTable(outcomes).split('\n').slice(2).map(plain);
  const at = documentedClients.indexOf(rows[0] ?? '');
  return { rows, documented: documentedClients.slice(at, at + rows.length) };
}
