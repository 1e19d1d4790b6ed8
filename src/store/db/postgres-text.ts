import type { QueryResult } from 'pg';
import { nameOf, type Statement } from './connections.ts';
import type { Call, Plan, Result, Sql } from './port.ts';
import { type Dialect, kept, type Rendered, render } from './sql.ts';

// A text as PostgreSQL's statement, which each connection prepares once, and the answer as a result.

/** The row's key stays locked until the write is on disk. Once the lease has moved, a write does nothing. */
const HOLDS_LEASE = `(@fencingToken::bigint IS NULL
      OR EXISTS (SELECT 1 FROM instance_lease
                  WHERE instance_lease.id = 1 AND fence = @fencingToken::bigint FOR KEY SHARE))`;

const DIALECT: Dialect = {
  parameter: (at, type) => `$${at}${type ? `::${type}` : ''}`,
  hasDone: true,
  isNumbered: true,
  rows: (columns, parameters) =>
    `(SELECT * FROM ROWS FROM (${parameters.map((one) => `unnest(${one})`).join(', ')}) WITH ORDINALITY
      AS given (${columns.join(', ')}, place))`,
  words: {
    INSTR: 'strpos',
    HOLDS_LEASE,
    COLUMNS: '(SELECT * FROM information_schema.columns WHERE table_schema = current_schema())',
  },
};

interface Named extends Rendered {
  readonly name: string;
}

const find = kept(({ sql, values }): Named => {
  const rendered = render(whole(sql), DIALECT, values);
  return { ...rendered, name: nameOf(rendered.text) };
});

/** A call as a statement. Its followers are parts of it. */
export function statementOf(call: Call): Statement {
  const { name, text, slots } = find(call);
  return { name, text, values: slots.map((slot) => valueIn(slot, call.values)) };
}

/** The first statement and its followers as one, which the database runs at one instant. */
function whole({ text, followers, given }: Sql<never, object>): string {
  if (followers.length === 0) return text;
  const steps = [`done AS (${text})`, ...followers.map((one, at) => `follower_${at} AS (${one})`)];
  return `WITH ${steps.join(',\n')} SELECT ${given?.map((one) => `"${one}"`).join(', ') ?? '*'} FROM done`;
}

function valueIn({ name, at, column }: Rendered['slots'][number], values: Call['values']): unknown {
  const value = values[name];
  if (at !== undefined) return (value as unknown[])[at];
  return column === undefined ? value : (value as Record<string, unknown>[]).map((row) => row[column]);
}

export const resultOf = ({ rows, rowCount }: Pick<QueryResult, 'rows' | 'rowCount'>): Result => ({
  rows,
  changes: rowCount ?? 0,
});

/** Runs a plan to its end. */
export async function drive<T>(plan: Plan<T>, run: (statement: Statement) => Promise<Result>): Promise<T> {
  let next = plan.next();
  while (!next.done) next = plan.next(await run(statementOf(next.value)));
  return next.value;
}
