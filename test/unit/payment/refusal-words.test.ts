import { posix } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { reason } from '../../../src/payment/channels/scheme.ts';
import { LNBTC_REASONS, LNBTC_REFUSALS } from '../../../src/payment/lightning/proof.ts';
import { MPP_REFUSALS } from '../../../src/payment/protocols/mpp/evm.ts';
import { OWN_REFUSALS, PaymentRefused, refusalWords } from '../../../src/payment/refusal.ts';
import { EVM_REFUSALS } from '../../../src/payment/usdc/authorization.ts';
import { RAILS } from '../../../src/wiring/rails.ts';
import { wordsOfRefusal } from '../../../src/wiring/surfaces.ts';
import { parseSource, readSources } from '../../support/sources.ts';

/**
 * Expressions that are no constant, and where their reasons come from. `named`: from members that this test reads too. Others are reasons of rows, which a
 * settler wrote, or a third party's own words.
 */
const COMPUTED: Readonly<Record<string, string>> = {
  'payment/usdc/checks.ts: reasons.used': 'named',
  'payment/usdc/checks.ts: reasons.insufficient': 'named',
  'payment/usdc/checks.ts: reasons.simulation': 'named',
  'payment/channels/scheme.ts: why': 'named',
  'payment/channels/voucher-sale.ts: stale.code': 'named',
  'payment/usdc/gateway.ts: reason': 'the Gateway’s own words',
  'payment/receipt.ts: reason': 'a row',
  'payment/refusal.ts: reason': 'a row, in a scheme’s words',
  'payment/lightning/redeem.ts: verdict.reason': 'the scheme’s list',
  'payment/lightning/redeem.ts: unreadable(call, credential, network)': 'the scheme’s list',
  'payment/usdc/facilitator-settler.ts: used': 'ALREADY_USED, from the Gateway’s settling',
};
/** Members whose values become reasons. */
const MEMBERS = /^(insufficient|used|simulation|code)$/;

const sources = readSources('src/{payment,mcp}/**/*.ts');
const parsed = new Map(sources.map((source) => [source.path, parseSource(source)]));

/** The initialiser of a constant of a file, or of the file that it imports the name from. */
function constant(file: ts.SourceFile, path: string, name: string): { at: string; value: ts.Expression } | null {
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement)) {
      const found = statement.declarationList.declarations.find((one) => one.name.getText(file) === name);
      if (found?.initializer) return { at: path, value: found.initializer };
    }
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue;
    const bindings = statement.importClause?.namedBindings;
    const isNamed = bindings && ts.isNamedImports(bindings) && bindings.elements.some((one) => one.name.text === name);
    const target = posix.join(posix.dirname(path), statement.moduleSpecifier.text);
    const other = isNamed ? parsed.get(target) : undefined;
    if (other) return constant(other, target, name);
  }
  return null;
}

/** The reasons that an expression can be, and the expressions in it that are no constant. */
function reasonsOf(path: string, expression: ts.Expression): string[] {
  const file = parsed.get(path) as ts.SourceFile;
  if (ts.isStringLiteralLike(expression)) return [expression.text];
  if (ts.isConditionalExpression(expression))
    return [...reasonsOf(path, expression.whenTrue), ...reasonsOf(path, expression.whenFalse)];
  if (ts.isCallExpression(expression) && expression.expression.getText(file) === 'reason' && expression.arguments[0])
    return reasonsOf(path, expression.arguments[0]).map((name) => (name.startsWith('?') ? name : reason(name)));
  const known = ts.isIdentifier(expression) ? constant(file, path, expression.text) : null;
  return known ? reasonsOf(known.at, known.value) : [`?${path.replace('src/', '')}: ${expression.getText(file)}`];
}

/** Every reason that a file gives a buyer: of refusals, of failed settlements, and of the members that name reasons. */
function reasonsIn(path: string, file: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const isRefusal = ts.isNewExpression(node) && node.expression.getText(file) === 'PaymentRefused';
    if (isRefusal && node.arguments?.[0]) found.push(...reasonsOf(path, node.arguments[0]));
    if (ts.isObjectLiteralExpression(node)) found.push(...inObject(path, file, node));
    // A name that `parse` and StaleVoucher take as a part of a reason.
    if (ts.isCallExpression(node) && node.expression.getText(file) === 'parse' && node.arguments[2])
      found.push(...reasonsOf(path, node.arguments[2]).map(reason));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function inObject(path: string, file: ts.SourceFile, node: ts.ObjectLiteralExpression): string[] {
  const members = new Map(
    node.properties.flatMap((one) =>
      ts.isPropertyAssignment(one) ? [[one.name.getText(file), one.initializer] as const] : [],
    ),
  );
  const failed = members.get('kind')?.getText(file) === "'failed'" ? members.get('reason') : undefined;
  const isOperation = /channels\/(claim|refund)|relayer\/watching/.test(path);
  return [
    ...(failed && !isOperation ? reasonsOf(path, failed) : []),
    ...[...members].flatMap(([name, value]) => {
      if (
        !MEMBERS.test(name) ||
        value.kind === ts.SyntaxKind.FalseKeyword ||
        !/payment\/(channels\/|usdc\/(exact|gateway))/.test(path)
      )
        return [];
      return reasonsOf(path, value).map((one) => (name === 'code' && !one.startsWith('?') ? reason(one) : one));
    }),
  ];
}

const all = [...parsed].flatMap(([path, file]) => reasonsIn(path, file));
// The process runs other tests after this file, and would keep the trees for them.
parsed.clear();
const said = new Set([...all.filter((one) => !one.startsWith('?')), ...LNBTC_REASONS]);
const computed = [...new Set(all.filter((one) => one.startsWith('?')).map((one) => one.slice(1)))].sort();
const wordsFor = (code: string) => wordsOfRefusal({ reason: code, detail: undefined });

describe('every reason for which the service refuses a payment', () => {
  test('is found in the code, or is known to be made while it runs', () => {
    expect(computed).toEqual(Object.keys(COMPUTED).sort());
    expect(said.size).toBeGreaterThan(70);
    expect(said).toContain('invalid_exact_evm_nonce_already_used');
    expect(said).toContain(reason('cumulative_below_claimed'));
  });

  test('has a sentence of its own', () => {
    expect([...said].filter((code) => wordsFor(code).includes(code)).sort()).toEqual([]);
  });

  test('says what is wrong and what the buyer can do, in at least two sentences', () => {
    for (const code of said) expect(wordsFor(code), code).toMatch(/^[A-Za-z].*[.:,] .*\.$/);
  });

  test('is in the tables, and no other is', () => {
    const ofRails = RAILS.flatMap(({ info }) => Object.keys(info.refusals ?? {}));
    const tables = [OWN_REFUSALS, EVM_REFUSALS, LNBTC_REFUSALS, MPP_REFUSALS].flatMap((table) => Object.keys(table));
    expect([...tables, ...ofRails].filter((code) => !said.has(code))).toEqual([]);
  });
});

test('a refusal that knows more than its reason says that, and a third party’s word is repeated', () => {
  const words = refusalWords([{ known: 'The known sentence.' }]);
  expect(words(new PaymentRefused('known'))).toBe('The known sentence.');
  expect(words(new PaymentRefused('known', { detail: 'More is known.' }))).toBe('More is known.');
  expect(words(new PaymentRefused('odd_word'))).toBe('The payment was refused: odd_word.');
});
