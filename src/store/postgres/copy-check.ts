import type { ClientBase } from 'pg';
import type { CopyColumn, CopyTable } from './copy-columns.ts';

/** A value as SQLite gives it, whole numbers as bigint. */
export type SourceValue = string | bigint | number | Uint8Array | null;

/** The number of rows of a table, or of one state in it, and a sum over each column: of the numbers, or of the lengths of texts and bytes. */
export interface Tally {
  readonly state: string | null;
  rows: number;
  readonly sums: bigint[];
}

/** Counts the rows that are read; by state for tables with `hasStates`. */
export function createTally(columns: readonly CopyColumn[], { hasStates }: CopyTable) {
  const tallies = new Map<string | null, Tally>();
  const stateAt = hasStates ? columns.findIndex(({ name }) => name === 'state') : -1;
  return {
    add: (row: readonly SourceValue[]): void => {
      const state = stateAt < 0 ? null : ((row[stateAt] ?? null) as string | null);
      const tally = tallies.get(state) ?? { state, rows: 0, sums: columns.map(() => 0n) };
      tallies.set(state, tally);
      tally.rows += 1;
      for (const [at, column] of columns.entries()) tally.sums[at] = (tally.sums[at] ?? 0n) + weigh(column, row[at]);
    },
    read: (): readonly Tally[] => [...tallies.values()].sort(byState),
  };
}

/** The tallies of the target, counted by its database. */
export async function tallyTarget(
  client: ClientBase,
  columns: readonly CopyColumn[],
  { name, hasStates }: CopyTable,
): Promise<readonly Tally[]> {
  const sums = columns.map((column, at) => `(${sumOf(column)})::text AS s${at}`);
  const state = hasStates ? 'state' : 'NULL::text';
  const { rows } = await client.query<Record<string, string | null>>(
    `SELECT ${state} AS state, count(*)::text AS rows, ${sums.join(', ')} FROM ${name} GROUP BY 1`,
  );
  return rows
    .map((row) => ({
      state: row.state ?? null,
      rows: Number(row.rows),
      sums: columns.map((_, at) => BigInt(row[`s${at}`] ?? 0)),
    }))
    .sort(byState);
}

/** Throws unless both tallies are equal. The message names the first table and column that differ. */
export function checkTallies(
  table: string,
  columns: readonly CopyColumn[],
  wanted: readonly Tally[],
  held: readonly Tally[],
): void {
  const states = (tallies: readonly Tally[]) =>
    tallies.map(({ state, rows }) => `${state ?? 'rows'} ${rows}`).join(', ');
  if (states(wanted) !== states(held))
    throw new Error(`${table} came out as (${states(held)}) instead of (${states(wanted)})`);
  for (const [at, column] of columns.entries())
    for (const [group, { sums }] of wanted.entries())
      if (sums[at] !== held[group]?.sums[at])
        throw new Error(`${table}.${column.name} sums to ${held[group]?.sums[at]} instead of ${sums[at]}`);
}

function byState(one: Tally, other: Tally): number {
  return (one.state ?? '') < (other.state ?? '') ? -1 : 1;
}

function weigh({ type }: CopyColumn, value: SourceValue | undefined): bigint {
  if (value === null || value === undefined) return 0n;
  if (value instanceof Uint8Array) return BigInt(value.length);
  if (type === 'text') return BigInt(Buffer.byteLength(String(value)));
  return BigInt(value);
}

function sumOf({ name, type }: CopyColumn): string {
  if (type === 'boolean') return `count(*) FILTER (WHERE ${name})`;
  const weight = type === 'text' ? `octet_length(${name})` : type === 'bytea' ? `length(${name})` : name;
  return `coalesce(sum(${weight}), 0)`;
}
