import { readFileSync } from 'node:fs';
import type { Outcome } from './judge.ts';
import { versionOfKit } from './kits.ts';

/** The outcomes as a Markdown table, a client's surfaces one below the other. Surfaces with the same result share a row. */
export function renderTable(outcomes: readonly Outcome[]): string {
  const rows = rowsOf(outcomes).map(({ client, surfaces, text, isFirst }) => {
    const cells = [isFirst ? client : '', surfaces.map((surface) => `\`${surface}\``).join(', '), text];
    return `| ${cells.join(' | ')} |`;
  });
  return ['| client | surface | result |', '|---|---|---|', ...rows].join('\n');
}

interface Row {
  readonly client: string;
  readonly surfaces: readonly string[];
  readonly text: string;
  /** Whether it is the client's first row. */
  readonly isFirst: boolean;
}

function rowsOf(outcomes: readonly Outcome[]): Row[] {
  const rows: Row[] = [];
  for (const outcome of outcomes) {
    const [client, text] = [titleOf(outcome), outcome.isBought ? `**${outcome.text}**` : outcome.text];
    const same = rows.findIndex((row) => row.client === client && row.text === text);
    const known = rows[same];
    if (known) rows[same] = { ...known, surfaces: [...known.surfaces, outcome.surface] };
    else rows.push({ client, surfaces: [outcome.surface], text, isFirst: rows.at(-1)?.client !== client });
  }
  return rows;
}

function titleOf({ client, package: name }: Outcome): string {
  const version = versionOf(name);
  return version === null ? client : `${client} (${version})`;
}

/** The installed version of a package; null when it is not installed. */
function versionOf(name: string): string | null {
  const kit = versionOfKit(name);
  if (kit !== null) return kit;
  try {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  } catch {
    return null;
  }
}
