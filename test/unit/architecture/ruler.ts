import { posix } from 'node:path';
import ts from 'typescript';
import { parseSource, type Source } from '../../support/sources.ts';

/** The most lines of a function's own: nested functions count apart. */
const OWN_LINES = 60;
/** The widest line, comments too, in characters. */
const LINE_WIDTH = 120;
/** A file with fewer lines is not a story of its own. */
const STORY_LINES = 40;
/** An option bag with more members is a missing object. */
const BAG_MEMBERS = 10;

/** What the ruler reads off a tree, by the names of its rows. */
export type Figures = Readonly<Record<string, number>>;

/** What one file adds to the figures. */
interface FileCount {
  readonly path: string;
  readonly lines: number;
  readonly wideLines: number;
  readonly imports: readonly string[];
  spreads: number;
  longFunctions: number;
  statements: number;
  readonly bags: number[];
  readonly typeNames: string[];
}

/** The figures of `src`. A file is known by its path, so the same file must not stand twice in `files`. */
export function measureSource(files: readonly Source[]): Figures {
  const counts = files.map(countFile);
  const near = singleNeighbours(counts);
  const bags = counts.flatMap((file) => file.bags);
  return {
    files: counts.length,
    lines: sum(counts.map((file) => file.lines)),
    [LONGEST]: Math.max(...counts.map((file) => file.lines)),
    'files whose only importer is in their folder, in a thousand': Math.round((1000 * near.length) / counts.length),
    'of these below 40 lines': near.filter((file) => file.lines < STORY_LINES).length,
    'spreads of a literal': sum(counts.map((file) => file.spreads)),
    'lines wider than 120': sum(counts.map((file) => file.wideLines)),
    'functions with more than 60 lines of their own': sum(counts.map((file) => file.longFunctions)),
    'option bags': bags.length,
    'option bags of more than 10 members': bags.filter((members) => members > BAG_MEMBERS).length,
    'type names used twice in a room': typesTwice(counts),
    'statements of SQL for the ledger': sum(counts.filter(isLedger).map((file) => file.statements)),
  };
}

/** The figures of scripts and tests, which have fewer rules. */
export function measureRest(files: readonly Source[]): Figures {
  const counts = files.map(countFile);
  return { 'spreads of a literal': sum(counts.map((file) => file.spreads)) };
}

/** This row is a limit and no ceiling: it says how long a story may be, and stays. */
export const LONGEST = 'lines of the longest file';

/** Each figure that its ceiling does not allow, and each ceiling that the tree has left behind, as a sentence. */
export function judge(figures: Figures, ceilings: Figures): string[] {
  return Object.entries(figures).flatMap(([row, is]) => {
    const ceiling = ceilings[row];
    if (ceiling === undefined) return [`${row}: ${is}, and no ceiling`];
    if (is > ceiling) return [`${row}: ${is}; ${ceiling} are allowed`];
    // A fiftieth is left for work in hand. Who gains more lowers the ceiling, so that it cannot be lost again.
    if (row !== LONGEST && is < ceiling - Math.floor(ceiling / 50))
      return [`${row}: ${is}; lower the ceiling from ${ceiling}`];
    return [];
  });
}

function countFile(source: Source): FileCount {
  const file = parseSource(source);
  const lines = source.text.split('\n');
  const found: FileCount = {
    path: source.path,
    lines: lines.length - 1,
    wideLines: lines.filter((line) => line.length > LINE_WIDTH).length,
    imports: relativeImports(source),
    spreads: 0,
    longFunctions: 0,
    statements: 0,
    bags: [],
    typeNames: [],
  };
  for (const statement of file.statements) countType(statement, found);
  const visit = (node: ts.Node): void => {
    if (ts.isSpreadAssignment(node) && ts.isObjectLiteralExpression(node.expression)) found.spreads++;
    if (isStatement(node)) found.statements++;
    if (hasBody(node) && ownLines(file, node) > OWN_LINES) found.longFunctions++;
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function countType(node: ts.Statement, found: FileCount): void {
  if (!ts.isInterfaceDeclaration(node) && !ts.isTypeAliasDeclaration(node)) return;
  found.typeNames.push(node.name.text);
  const isBag = /(Options|Parts|Needs|Deps|Kit|Terms|Params)$/.test(node.name.text);
  if (ts.isInterfaceDeclaration(node) && isBag) found.bags.push(node.members.length);
}

/** Every file that the text names by a relative path in an import, an export or a load on demand, types included. */
function relativeImports({ path, text }: Source): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)].map((match) =>
    posix.join(posix.dirname(path), match[1] as string),
  );
}

/** Text that begins like a statement of SQL. */
function isStatement(node: ts.Node): boolean {
  const text = ts.isStringLiteralLike(node) ? node.text : ts.isTemplateExpression(node) ? node.head.text : '';
  return /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s/.test(text);
}

/** The ledger's rooms, under their names of today and of the plan. */
function isLedger({ path }: FileCount): boolean {
  return path.startsWith('src/store/');
}

type WithBody = ts.FunctionLikeDeclaration & { readonly body: ts.Node };

function hasBody(node: ts.Node): node is WithBody {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined;
}

/** A function's lines, from its first word to its closing brace, less those of the bodies of the functions inside. */
function ownLines(file: ts.SourceFile, node: WithBody): number {
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  let own = lineOf(node.end) - lineOf(node.getStart(file)) + 1;
  const leaveOut = (inner: ts.Node): void => {
    if (hasBody(inner)) own -= lineOf(inner.body.end) - lineOf(inner.body.getStart(file));
    else ts.forEachChild(inner, leaveOut);
  };
  ts.forEachChild(node.body, leaveOut);
  return own;
}

/** Files that one file alone imports, from the same folder: steps of a story that is told elsewhere. */
function singleNeighbours(counts: readonly FileCount[]): FileCount[] {
  const importers = new Map(counts.map(({ path }) => [path, new Set<string>()]));
  for (const { path, imports } of counts)
    for (const target of imports) if (target !== path) importers.get(target)?.add(path);
  return counts.filter(({ path }) => {
    const [only, another] = importers.get(path) ?? [];
    return only !== undefined && another === undefined && posix.dirname(only) === posix.dirname(path);
  });
}

/** Names of types that stand more than once in a room. A room is a folder directly below `src`. */
function typesTwice(counts: readonly FileCount[]): number {
  const named = counts.flatMap(({ path, typeNames }) => {
    const room = path.split('/').slice(0, 2).join('/');
    return typeNames.map((name) => `${room} ${name}`);
  });
  return new Set(named.filter((name, at) => named.indexOf(name) !== at)).size;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
