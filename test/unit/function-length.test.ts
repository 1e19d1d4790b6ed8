import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { parseSource, readSources, type Source } from '../support/sources.ts';

/** The most lines of a function, with everything inside it. */
const MAX_LINES = 60;
/** Far fewer than exist. It shows that the test looks in the right place. */
const MIN_FUNCTIONS = 1000;

/** A function by its file and its name, which follows the names of the functions around it. */
interface Measured {
  readonly name: string;
  readonly lines: number;
}

/**
 * Longer functions, with their present lines. The list may only shrink. An entry fails when its function is gone, short enough, or shorter than the
 * entry says.
 * So the change that shortens a function lowers or deletes its entry.
 */
const EXCEPTIONS: Readonly<Record<string, number>> = {
  'src/payment/evm/chain-check.ts createChainCheck': 71,
  'src/payment/evm/shared-reads.ts createSharedReads': 114,
  'src/payment/ledger.ts createLedger': 95,
  'src/payment/purchase.ts createPurchase': 186,
  'src/payment/rails/lightning/node-watch.ts createNodeWatch': 100,
  'src/payment/rails/lightning/nodes/nwc-session.ts openNwcSession': 82,
  'src/payment/rails/lightning/open.ts createLightning': 73,
  'src/payment/settlers/facilitator/queue.ts createRemoteQueue': 84,
  'src/store/sqlite/market-store.ts createMarketStore': 65,
  'src/wiring/deps.ts createDeps': 111,
};

/** Every function of a file that has a body, in text order. Lines count from the function's first word to its closing brace. */
function functionsOf(source: Source): Measured[] {
  const file = parseSource(source);
  const found: Measured[] = [];
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  /** `given` is the name from the context, such as a variable's or a property's, for a function without its own. */
  const visit = (node: ts.Node, around: readonly string[], given: string | null): void => {
    if (!hasBody(node)) {
      const inner = namedHere(node) ?? (isTransparent(node) ? given : null);
      ts.forEachChild(node, (child) => visit(child, around, inner));
      return;
    }
    const names = [...around, nameOf(node) ?? given ?? '(anonymous)'];
    const lines = lineOf(node.end) - lineOf(node.getStart(file)) + 1;
    found.push({ name: `${source.path} ${names.join('.')}`, lines });
    ts.forEachChild(node, (child) => visit(child, names, null));
  };
  visit(file, [], null);
  return found;
}

function hasBody(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined;
}

function nameOf(node: ts.FunctionLikeDeclaration): string | null {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  return node.name ? textOf(node.name) : null;
}

/** The name that a variable, a property or an assignment gives to its value. */
function namedHere(node: ts.Node): string | null {
  if (ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node) || ts.isPropertyDeclaration(node))
    return textOf(node.name);
  return null;
}

/** Syntax around a function that does not change it: `const f = (() => 1) as F`. */
function isTransparent(node: ts.Node): boolean {
  return ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node);
}

function textOf(name: ts.PropertyName | ts.BindingName): string | null {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) || ts.isPrivateIdentifier(name) ? name.text : null;
}

/** What breaks the rule, one sentence each. `exceptions` name functions and their lines. */
function faultsOf(functions: readonly Measured[], exceptions: Readonly<Record<string, number>>): string[] {
  const long = functions.filter(({ lines }) => lines > MAX_LINES);
  const tooLong = long
    .filter(({ name, lines }) => lines > (exceptions[name] ?? MAX_LINES))
    .map(({ name, lines }) => `${name} has ${lines} lines; ${exceptions[name] ?? MAX_LINES} are allowed`);
  const stale = Object.entries(exceptions).flatMap(([name, allowed]) => {
    const lines = Math.max(0, ...long.filter((one) => one.name === name).map((one) => one.lines));
    if (lines === 0) return [`${name} needs no exception`];
    return lines < allowed ? [`${name} has ${lines} lines: lower its exception from ${allowed}`] : [];
  });
  return [...tooLong, ...stale];
}

describe('the functions of src and scripts', () => {
  // Measured once: to parse every file takes a second.
  const functions = [...readSources('src/**/*.ts'), ...readSources('scripts/**/*.ts')].flatMap(functionsOf);

  test('were read completely', () => {
    expect(functions.length).toBeGreaterThan(MIN_FUNCTIONS);
  });

  test(`have at most ${MAX_LINES} lines, closures included, except for the listed ones`, () => {
    expect(faultsOf(functions, EXCEPTIONS)).toEqual([]);
  });
});

describe('the measure of functions', () => {
  const lines = (count: number): string => 'x();\n'.repeat(count);
  const file = (text: string): Source => ({ path: 'src/x.ts', text });
  const faults = (text: string, exceptions: Record<string, number> = {}) =>
    faultsOf(functionsOf(file(text)), exceptions);

  test.each([
    ['a declaration', `function long() {\n${lines(59)}}`, 'long'],
    ['an exported async generator', `export async function* long() {\n${lines(59)}}`, 'long'],
    ['a default export', `export default function () {\n${lines(59)}}`, '(anonymous)'],
    ['an arrow function', `const long = () => {\n${lines(59)}};`, 'long'],
    ['an arrow function behind a cast', `const long = (() => {\n${lines(59)}}) as Long;`, 'long'],
    ['an expression', `const long = function () {\n${lines(59)}};`, 'long'],
    ['a method', `const o = {\nlong() {\n${lines(59)}},\n};`, 'long'],
    ['a property', `const o = {\n'of its own': async () => {\n${lines(59)}},\n};`, 'of its own'],
    ['an accessor', `const o = {\nget long() {\n${lines(59)}},\n};`, 'long'],
    ['a constructor', `class O {\nconstructor() {\n${lines(59)}}\n}`, 'constructor'],
    ['an argument', `run(() => {\n${lines(59)}});`, '(anonymous)'],
    ['a long expression without braces', `const long = () => [\n${'1,\n'.repeat(59)}];`, 'long'],
  ])('%s of 61 lines is too long', (_what, text, name) => {
    expect(faults(text)).toEqual([`src/x.ts ${name} has 61 lines; 60 are allowed`]);
  });

  test('a function of 60 lines is short enough, and comments before it do not count', () => {
    expect(faults(`/**\n * One.\n * Two.\n */\nfunction fits() {\n${lines(58)}}`)).toEqual([]);
  });

  test('the lines of closures count for the function around them, and a long closure is named behind it', () => {
    const closure = `const inner = () => {\n${lines(30)}};\n`;
    expect(faults(`function outer() {\n${closure}${closure}}`)).toEqual([
      'src/x.ts outer has 66 lines; 60 are allowed',
    ]);
    expect(faults(`function outer() {\nreturn {\ninner: () => {\n${lines(60)}},\n};\n}`)).toEqual([
      'src/x.ts outer has 66 lines; 60 are allowed',
      'src/x.ts outer.inner has 62 lines; 60 are allowed',
    ]);
  });

  test('an exception allows its lines and not one more', () => {
    const text = (count: number) => `function long() {\n${lines(count - 2)}}`;
    expect(faults(text(70), { 'src/x.ts long': 70 })).toEqual([]);
    expect(faults(text(71), { 'src/x.ts long': 70 })).toEqual(['src/x.ts long has 71 lines; 70 are allowed']);
  });

  test('an exception fails once its function is shorter than it says, short enough, or gone', () => {
    const text = (count: number) => `function long() {\n${lines(count - 2)}}`;
    expect(faults(text(69), { 'src/x.ts long': 70 })).toEqual([
      'src/x.ts long has 69 lines: lower its exception from 70',
    ]);
    expect(faults(text(60), { 'src/x.ts long': 70 })).toEqual(['src/x.ts long needs no exception']);
    expect(faults('', { 'src/x.ts long': 70 })).toEqual(['src/x.ts long needs no exception']);
  });
});
