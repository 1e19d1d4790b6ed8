/** A small change of an SQL text. */
export interface SqlMutant {
  /** What is replaced, with the code around it: names the mutant among those of its text. */
  readonly where: string;
  readonly replacement: string;
  /** The whole text, changed. */
  readonly text: string;
}

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}
interface Change {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const TOKENS = /--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\{\w+\}|@\w+(?:::\w+(?:\[\])?)?|[\w.]+|<=|>=|<>|\|\||\S/g;
/** What ends a condition at its own depth. */
const ENDS = /^(AND|OR|THEN|ELSE|WHEN|END|ORDER|GROUP|HAVING|LIMIT|RETURNING|ON|UNION|FOR|FROM|WHERE|AS|,|\))$/;
const BEGINS = /^(WHERE|AND|OR|WHEN|HAVING)$/;
const COMPARISONS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '<>': '=',
  '=': '<>',
};
const OTHERS: Readonly<Record<string, string>> = {
  AND: 'OR',
  OR: 'AND',
  '+': '-',
  '-': '+',
  max: 'min',
  min: 'max',
  DESC: 'ASC',
};
/** Around what is replaced, on either side. */
const CONTEXT = 30;

/** The small changes of a text: each comparison, condition, order, assignment, constant and choice, one at a time. */
export function sqlMutants(text: string): SqlMutant[] {
  const tokens = tokensOf(text);
  const changes = tokens.flatMap((_, at) => [...changesAt(tokens, at)]);
  const made = new Map<string, SqlMutant>();
  for (const { start, end, replacement } of changes) {
    const changed = text.slice(0, start) + replacement + text.slice(end);
    const where = `${text.slice(Math.max(0, start - CONTEXT), start)}[${text.slice(start, end)}]${text.slice(end, end + CONTEXT)}`;
    if (changed !== text) made.set(changed, { where: plain(where), replacement, text: changed });
  }
  return [...made.values()];
}

const plain = (code: string): string => code.replace(/\s+/g, ' ').trim();

function tokensOf(text: string): Token[] {
  let depth = 0;
  return [...text.matchAll(TOKENS)]
    .filter(([one]) => !one.startsWith('--'))
    .map((match) => {
      const [one] = match;
      if (one === ')') depth--;
      const token = { text: one, start: match.index, end: match.index + one.length, depth };
      if (one === '(') depth++;
      return token;
    });
}

function* changesAt(tokens: readonly Token[], at: number): Generator<Change> {
  const token = tokens[at] as Token;
  const { text, start, end } = token;
  const [before, next] = [tokens[at - 1]?.text ?? '', tokens[at + 1]?.text ?? ''];
  const isAssignment = text === '=' && /^(SET|,)$/.test(tokens[at - 2]?.text ?? '') && isInSet(tokens, at);

  if (isAssignment) yield { ...span(tokens, at + 1, /^(WHERE|FROM|RETURNING|,|\))$/), replacement: before };
  else if (text in COMPARISONS) yield { start, end, replacement: COMPARISONS[text] as string };
  if (text in OTHERS && !(text === '-' && /^(\(|,|LIMIT|THEN|=)$/.test(before)))
    yield { start, end, replacement: OTHERS[text] as string };

  if (BEGINS.test(text)) {
    const condition = span(tokens, at + 1, ENDS);
    if (text !== 'OR') yield { ...condition, replacement: 'TRUE' };
    if (text === 'OR' || text === 'WHEN') yield { ...condition, replacement: 'FALSE' };
  }
  if (text === 'NOT' && before !== 'IS' && next !== 'NULL') yield { start, end, replacement: '' };
  if (text === 'EXISTS' && before !== 'NOT') yield { start, end, replacement: 'NOT EXISTS' };
  if (text === 'IS')
    yield {
      start,
      end: next === 'NOT' ? (tokens[at + 1] as Token).end : end,
      replacement: next === 'NOT' ? 'IS' : 'IS NOT',
    };

  if (text === 'BY' && before === 'ORDER') {
    const term = span(tokens, at + 1, /^(LIMIT|DESC|ASC|,|\))$/);
    yield { start: term.end, end: term.end, replacement: ' DESC' };
  }
  if (text === 'LIMIT' && next !== '1') yield { ...span(tokens, at + 1, /^(OFFSET|\))$/), replacement: '-1' };
  if (text === 'coalesce')
    for (const argument of argumentsOf(tokens, at + 1))
      yield { start, end: argument.close, replacement: argument.text };
  if (text === 'DISTINCT' && before === '(') yield { start, end, replacement: '' };
  if (text === 'sum') yield { start, end, replacement: 'max' };

  if (/^\d+$/.test(text) && !/^(SELECT|LIMIT)$/.test(before) && next !== 'FROM')
    yield { start, end, replacement: String(Number(text) + 1) };
  if (/^'/.test(text) && !/[<>=]$/.test(before)) yield* literal(token, before, next);
}

/** Whether a column before `at` gets a value. In a SELECT the same text compares. */
function isInSet(tokens: readonly Token[], at: number): boolean {
  const { depth } = tokens[at] as Token;
  const before = tokens.slice(0, at).filter((one) => one.depth === depth);
  return before.findLast(({ text }) => /^(SET|SELECT|WHERE)$/.test(text))?.text === 'SET';
}

/** Out of a list of several, or empty. */
function* literal({ text, start, end }: Token, before: string, next: string): Generator<Change> {
  if (text !== "''") yield { start, end, replacement: "''" };
  if (before === '(' && next === ')') yield { start, end, replacement: 'NULL' };
}

/** From a token to the first one of its depth that ends it. */
function span(tokens: readonly Token[], from: number, ends: RegExp): { start: number; end: number } {
  const first = tokens[from] as Token;
  const depth = first.text === '(' ? first.depth : Math.min(first.depth, tokens[from - 1]?.depth ?? 0);
  let cases = 0;
  let last = first;
  for (const token of tokens.slice(from)) {
    if (token.depth < depth) break;
    if (token.text === 'CASE' && token.depth === depth) cases++;
    if (cases === 0 && token.depth === depth && token !== first && ends.test(token.text) && token.text !== ')') break;
    if (token.text === 'END' && token.depth === depth) cases--;
    last = token;
  }
  return { start: first.start, end: last.end };
}

/** The arguments of a call whose bracket opens at `open`. */
function argumentsOf(tokens: readonly Token[], open: number): { text: string; close: number }[] {
  const depth = (tokens[open]?.depth ?? 0) + 1;
  const rest = tokens.slice(open + 1);
  const inside = rest.slice(
    0,
    rest.findIndex((one) => one.depth < depth),
  );
  const close = rest[inside.length]?.end ?? 0;
  const parts: Token[][] = [[]];
  for (const one of inside) {
    if (one.text === ',' && one.depth === depth) parts.push([]);
    else parts.at(-1)?.push(one);
  }
  return parts.map((part) => ({ text: part.map((one) => one.text).join(' '), close }));
}
