import ts from 'typescript';
import { expect, test } from 'vitest';
import { readText } from '../../support/documents.ts';
import { parseSource, readSources } from '../../support/sources.ts';

// Every code that a refused or failed payment can get stands in docs/paying.md.

const ERRORS = ['PaymentRefused', 'AppError', 'BadParameter', 'NotFound', 'TooMany', 'Unavailable'];
const CODE = /^[a-z0-9]+(?:_[a-z0-9]+)+$/;
/** The standards' own reasons. The document names where each of them begins. */
const STANDARD = /^invalid_(?:exact_evm|exact_lnbtc|batch_settlement_evm)_/;
/** The client has left and never receives it. */
const NEVER_SENT = ['client_gone'];

const files = readSources('src/payment/**/*.ts').map(parseSource);

/** The text of each constant, by its name. */
const constants = new Map<string, string>();
for (const file of files)
  visit(file, (node) => {
    if (!ts.isVariableDeclaration(node) || !node.initializer || !ts.isStringLiteral(node.initializer)) return;
    if (ts.isIdentifier(node.name)) constants.set(node.name.text, node.initializer.text);
  });

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

/** The texts that an argument can be: a literal, a constant, or either branch of a condition. */
function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteral(node)) return [node.text];
  if (ts.isIdentifier(node)) return [constants.get(node.text) ?? ''];
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  return ts.isBinaryExpression(node) ? [...textsOf(node.left), ...textsOf(node.right)] : [];
}

/** The codes of the errors that a file makes, and the reasons that it gives to a request without a payment. */
function codesIn(file: ts.SourceFile): string[] {
  const found: string[] = [];
  visit(file, (node) => {
    if (ts.isNewExpression(node) && ts.isIdentifier(node.expression) && ERRORS.includes(node.expression.text))
      found.push(...(node.arguments ?? []).flatMap(textsOf));
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'unpaidReason')
      visit(node.initializer, (inner) => void (ts.isIdentifier(inner) && found.push(...textsOf(inner))));
  });
  return found.filter((code) => CODE.test(code));
}

const codes = new Set(files.flatMap(codesIn));
// The process runs other tests after this file, and would keep the trees for them.
files.length = 0;

test('docs/paying.md names every code with which a payment is refused or fails', () => {
  for (const known of ['x402_not_here', 'payment_already_used', 'two_payments', 'method_unsupported'])
    expect([...codes]).toContain(known);
  expect(codes.size).toBeGreaterThan(30);
  const text = readText('docs/paying.md');
  const isNamed = (code: string): boolean =>
    text.includes(`\`${code}\``) || STANDARD.test(code) || NEVER_SENT.includes(code);
  expect([...codes].filter((code) => !isNamed(code))).toEqual([]);
});

test('docs/paying.md has a row for every error of a request whose payment was not looked at', () => {
  const undecided = readSources('src/http/**/*.ts')
    .filter((source) => /charged: 'unknown'/.test(source.text))
    .flatMap((source) => codesIn(parseSource(source)));
  expect(undecided).toContain('too_many_connections');
  const rows = readText('docs/paying.md')
    .split('\n')
    .filter((line) => line.includes('| `"unknown"`'));
  expect(undecided.filter((code) => !rows.some((row) => row.includes(`\`${code}\``)))).toEqual([]);
});

test('docs/paying.md names where the reasons of each standard begin', () => {
  const text = readText('docs/paying.md');
  for (const start of ['invalid_exact_evm', 'invalid_exact_lnbtc', 'invalid_batch_settlement_evm'])
    expect(text).toContain(`\`${start}\``);
});

test('docs/paying.md names every reason that a problem document of MPP has a type for', () => {
  const problem = readText('src/payment/protocols/mpp/challenge.ts');
  const [, types = ''] = /const TYPES[^=]*= \{([\s\S]*?)\n\};/.exec(problem) ?? [];
  const reasons = [...types.matchAll(/^ {2}(\w+): /gm)].map(([, reason]) => String(reason));
  expect(reasons.length).toBeGreaterThan(5);
  const text = readText('docs/paying.md');
  expect(reasons.filter((reason) => !text.includes(`\`${reason}\``) && !STANDARD.test(reason))).toEqual([]);
});
