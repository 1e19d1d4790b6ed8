/** What is read here of Babel's node and path; Stryker hands them over. */
interface Node {
  readonly type: string;
  readonly value?: unknown;
  readonly name?: string;
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
  readonly callee?: Node;
  readonly object?: Node;
  readonly property?: Node;
  readonly id?: Node;
  readonly key?: Node;
}
interface Path {
  readonly node: Node;
  readonly parentPath: Path | null;
}

const LOGGED = 'what a log line says is read by an operator, and no promise hangs on it; that it is written is mutated';
// The name of a node's answer, with which such a sentence begins, counts as wording too.
const SENTENCE = 'the wording of a sentence for a person; the code, the status and the numbers beside it are mutated';

/** The names of members and constants that hold a sentence for a person. */
const NAMED = new Set(['detail', 'help', 'description']);

function shouldIgnore(path: Path): string | undefined {
  for (let at: Path | null = path; at?.parentPath; at = at.parentPath) {
    const { node } = at.parentPath;
    if (isLogCall(node) && at.node !== node.callee) return LOGGED;
    // The search stops at a function or a statement: what these do is no wording.
    if (/Function|Statement/.test(node.type)) break;
  }
  const reader = path.parentPath?.node.callee?.name ?? '';
  if (/^(parseAnswer|readOutcome)$/.test(reader) && path.node.type === 'StringLiteral') return SENTENCE;
  return isSentence(path.node) && tellsWhy(path.parentPath) ? SENTENCE : undefined;
}

function isLogCall({ type, callee }: Node): boolean {
  if (type !== 'CallExpression' || callee?.type !== 'MemberExpression') return false;
  const on = callee.object?.name ?? callee.object?.property?.name;
  return on === 'log' && /^(error|warn|info|debug)$/.test(callee.property?.name ?? '');
}

/** Three words at least: codes, header names and units are none. */
function isSentence({ type, value, quasis }: Node): boolean {
  if (type === 'TemplateLiteral') return / .* /.test(quasis?.map(({ value: { raw } }) => raw).join('x') ?? '');
  return type === 'StringLiteral' && / .* /.test(String(value));
}

/** Of an error that is made, or named as a sentence. */
function tellsWhy(parent: Path | null): boolean {
  if (!parent) return false;
  const { node } = parent;
  if (node.type === 'ConditionalExpression') return tellsWhy(parent.parentPath);
  if (node.type === 'NewExpression') return true;
  return NAMED.has((node.id ?? node.key)?.name ?? '');
}

/** Leaves out mutants of wording: of log lines and of sentences for people. Stryker's form of a plug-in. */
export const strykerPlugins = [{ kind: 'Ignore', name: 'wording', value: { shouldIgnore } }];
