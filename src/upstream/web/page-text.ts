import { clipText } from '../../lib/untrusted.ts';

/** The parts of a DOM that are used. linkedom's own types would need the browser's. */
export interface PageNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly textContent: string | null;
  readonly childNodes: ArrayLike<PageNode>;
  getAttribute?(name: string): string | null;
}

const ELEMENT = 1;
const TEXT = 3;

/** Elements that are not text of the page: code, controls, and parts that repeat on every page of a site. */
const SKIPPED = new Set([
  ...['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'SVG', 'IFRAME', 'OBJECT', 'CANVAS', 'HEAD', 'NAV'],
  ...['SELECT', 'BUTTON', 'INPUT', 'TEXTAREA', 'DIALOG', 'MATH'],
]);
/** Elements on their own lines. Those of the first set have an empty line around them. */
const PARAGRAPHS = new Set([
  'P',
  'H1',
  'H2',
  'H3',
  'H4',
  'H5',
  'H6',
  'UL',
  'OL',
  'DL',
  'TABLE',
  'BLOCKQUOTE',
  'PRE',
  'FIGURE',
]);
const LINES = new Set([
  ...[
    'DIV',
    'LI',
    'TR',
    'DT',
    'DD',
    'SECTION',
    'ARTICLE',
    'MAIN',
    'HEADER',
    'FOOTER',
    'ASIDE',
    'ADDRESS',
    'FIGCAPTION',
  ],
  ...['FIELDSET', 'FORM', 'HR', 'BODY', 'CAPTION', 'DETAILS', 'SUMMARY'],
]);
const CELLS = new Set(['TD', 'TH']);
/** Marks the end of a line. Several in a row end it once. No text contains it, because white space is collapsed. */
const EDGE = '\v';

/**
 * The text that a reader sees under a node: white space collapsed, paragraphs apart by an empty line, hidden parts left out.
 * It uses its own stack and stops after `maxUnits`, because pages may nest deeper than the call stack and be very long.
 */
export function visibleText(root: PageNode, maxUnits: number): string {
  const parts: string[] = [];
  let units = 0;
  // A string is text to write after the children of a node.
  const stack: (PageNode | string)[] = [root];
  for (let next = stack.pop(); next !== undefined && units < maxUnits; next = stack.pop()) {
    const written = typeof next === 'string' ? next : enter(next, stack);
    if (written === '') continue;
    parts.push(written);
    units += written.length;
  }
  return tidy(parts.join(''));
}

function enter(node: PageNode, stack: (PageNode | string)[]): string {
  if (node.nodeType === TEXT) return (node.textContent ?? '').replace(/\s+/g, ' ');
  if (node.nodeType === ELEMENT && isUnseen(node)) return '';
  const name = node.nodeName.toUpperCase();
  if (name === 'BR') return '\n';
  // Preformatted text keeps its lines.
  if (name === 'PRE') return `\n\n${node.textContent ?? ''}\n\n`;
  const edge = PARAGRAPHS.has(name) ? '\n\n' : LINES.has(name) ? EDGE : CELLS.has(name) ? ' ' : '';
  if (edge !== '') stack.push(edge);
  const children = node.childNodes;
  for (let at = children.length - 1; at >= 0; at--) {
    const child = children[at];
    if (child !== undefined) stack.push(child);
  }
  return edge;
}

/** Whether an element is no part of the text that a reader sees: code, controls, menus, and what is hidden. */
export function isUnseen(node: PageNode): boolean {
  if (SKIPPED.has(node.nodeName.toUpperCase())) return true;
  const read = (name: string) => node.getAttribute?.(name) ?? null;
  if (read('hidden') !== null || read('aria-hidden') === 'true') return true;
  return /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(read('style') ?? '');
}

/** Whether anything below a node is nested deeper than `max`. */
export function isDeeper(root: PageNode, max: number): boolean {
  const stack = [{ node: root, depth: 0 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, depth } = next;
    if (depth > max) return true;
    for (const child of Array.from(node.childNodes))
      if (child.nodeType === ELEMENT) stack.push({ node: child, depth: depth + 1 });
  }
  return false;
}

/**
 * The nodes below an element, in the page's order, without those of elements of the same kind in it. A heading in a heading and a link in a link are
 * ends that were left out: browsers close the outer one there. No node belongs to two elements, so that reading them all takes one pass over the page.
 */
export function* ownNodes<N extends PageNode>(root: N, isSame: (nodeName: string) => boolean): Generator<N> {
  const stack: N[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node !== root) {
      if (isSame(node.nodeName)) continue;
      yield node;
    }
    const children = Array.from(node.childNodes) as N[];
    for (const child of children.reverse()) stack.push(child);
  }
}

/** The text of an element's own nodes. */
export function ownText(root: PageNode, isSame: (nodeName: string) => boolean): string {
  const parts: string[] = [];
  for (const node of ownNodes(root, isSame)) if (node.nodeType === TEXT) parts.push(node.textContent ?? '');
  return parts.join('');
}

/** Whether a reader sees anything of a text: a character that is neither white space nor of no width nor a control. */
export function isSeen(text: string): boolean {
  return /[^\p{C}\p{Z}]/u.test(text);
}

/** One space between words, no space at the ends of lines, at most one empty line. */
export function tidy(text: string): string {
  return text
    .normalize('NFC')
    .replace(/\r\n?/g, '\n')
    .replace(/[^\S\n\v]+/g, ' ')
    .replace(/[ \v\n]*[\v\n][ \v\n]*/g, (run) => (run.split('\n').length > 2 ? '\n\n' : '\n'))
    .trim();
}

/** A text on one line without control characters, cut to `max` characters; null when nothing is left. */
export function lineOf(text: string | null | undefined, max: number): string | null {
  const plain = tidy((text ?? '').replace(CONTROLS, '')).replace(/\n+/g, ' ');
  const clipped = clipText(plain, max).text;
  return clipped === '' ? null : clipped;
}

/** Control characters other than white space. No text has them on purpose, and terminals obey them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const CONTROLS = /[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/g;
