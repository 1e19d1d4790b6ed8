import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = join(import.meta.dirname, '../../../docs/disks.md');

/** The cells of the row that a table of docs/disks.md has for a fault, without the first. `heading`: the heading above the table. */
export function documented(heading: string, fault: string): string[] {
  const section =
    readFileSync(PAGE, 'utf8')
      .split(/^## /m)
      .find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  const row = rows.map((line) => line.slice(2, -2).split(' | ')).find(([name]) => name === fault);
  return row?.slice(1) ?? [];
}
