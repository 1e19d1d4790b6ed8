import TurndownService from 'turndown';
import { clipText } from '../../lib/untrusted.ts';
import { MAX_TEXT, type PageContent } from './page-content.ts';
import { CONTROLS, ELEMENT, isDeeper, isUnseen, type PageElement, TEXT, webUrl } from './page-text.ts';

/** The writer calls itself for each level. Pages for readers stay below 60. */
const MAX_DEPTH = 128;
/** Enough for the text of an answer. The writer copies what it has at each node: its time grows with their product. */
const LIMITS = { maxNodes: 6000, maxUnits: 24_000 };

type Markdown = Pick<PageContent, 'markdown' | 'markdownTruncated' | 'markdownMissing'>;

const NONE: Markdown = { markdown: null, markdownTruncated: false, markdownMissing: 'unusual_markup' };

const service = new TurndownService({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
  emDelimiter: '*',
  hr: '---',
});
addTables(service);

/** A part of a page in Markdown, with absolute links. Changes the part: it is first pruned to what Markdown shows. */
export function markdownOf(root: PageElement, base: string): Markdown {
  if (isDeeper(root, MAX_DEPTH)) return NONE;
  try {
    const cut = prune(root, base, LIMITS);
    const text = service.turndown(root as never).replace(CONTROLS, '');
    const clipped = clipText(text, MAX_TEXT);
    return { markdown: clipped.text, markdownTruncated: cut || clipped.truncated, markdownMissing: null };
  } catch {
    // The writer failed on unusual markup; the text does without it.
    return NONE;
  }
}

/** Elements that say something without text. */
const SAYS = new Set(['IMG', 'BR', 'HR', 'TD', 'TH']);
/** White space in a row. The writer's regular expressions take the square of it in time. */
const MAX_RUN = 200;
/** What the writer makes of a BR: two spaces and the line's end. */
const BREAK_UNITS = 3;

/** Leaves what a reader sees, with absolute links, within the limits; true when it cut. Uses no call stack. */
function prune(root: PageElement, base: string, { maxNodes, maxUnits }: typeof LIMITS): boolean {
  const order: PageElement[] = [];
  let units = 0;
  // White space at the end of what is kept so far, in units.
  let run = 0;
  let cut = false;
  const stack: PageElement[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    cut ||= order.length >= maxNodes || units >= maxUnits;
    if (cut || !isKept(node) || (isBreak(node) && run >= MAX_RUN)) {
      if (node !== root) node.remove();
      continue;
    }
    order.push(node);
    if (node.nodeType === TEXT) {
      const spaced = shortenRuns(node.textContent ?? '', run);
      const text = clipUnits(spaced, maxUnits - units);
      cut ||= text.length < spaced.length;
      if (text !== node.textContent) node.textContent = text;
      units += text.length;
      run = endRun(text, run);
      continue;
    }
    cleanAttributes(node, base);
    if (isBreak(node)) run += BREAK_UNITS;
    else if (isShown(node)) run = 0;
    // linkedom makes a new list for each look at `childNodes`.
    for (const child of Array.from(node.childNodes).reverse()) stack.push(child);
  }
  // Children come after their parents, so the last are looked at first.
  for (const node of order.reverse()) if (node !== root && saysNothing(node)) node.remove();
  return cut;
}

function isKept(node: PageElement): boolean {
  if (node.nodeType === TEXT) return true;
  return node.nodeType === ELEMENT && !isUnseen(node);
}

function isBreak({ nodeName }: PageElement): boolean {
  return nodeName.toUpperCase() === 'BR';
}

/** No run of white space is longer than MAX_RUN. `before` is the length of the run that the text follows. */
function shortenRuns(text: string, before: number): string {
  return text.replace(/\s+/g, (run, at: number) => run.slice(0, Math.max(0, MAX_RUN - (at === 0 ? before : 0))));
}

/** Never half a character. */
function clipUnits(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max).replace(/[\ud800-\udbff]$/, '');
}

/** The white space at the end, once a text has followed a run of it. */
function endRun(text: string, before: number): number {
  const shown = text.trimEnd().length;
  return shown === 0 ? before + text.length : text.length - shown;
}

/** Attributes that Markdown has a place for. A title only repeats, and is the author's. */
const KEPT: Record<string, readonly string[]> = { A: ['href'], IMG: ['src', 'alt'], CODE: ['class'], OL: ['start'] };
const DROPPED = ['href', 'src', 'alt', 'title', 'class', 'start'];
const MAX_ALT = 200;

function cleanAttributes(element: PageElement, base: string): void {
  const name = element.nodeName.toUpperCase();
  for (const attribute of DROPPED)
    if (!KEPT[name]?.includes(attribute) && element.getAttribute(attribute) !== null)
      element.removeAttribute(attribute);
  const reference = name === 'A' ? 'href' : name === 'IMG' ? 'src' : null;
  if (reference === null) return;
  const url = webUrl(element.getAttribute(reference), base);
  if (url === null) element.removeAttribute(reference);
  // Markdown ends a link at a bracket.
  else element.setAttribute(reference, url.replaceAll('(', '%28').replaceAll(')', '%29'));
  const alt = element.getAttribute('alt');
  if (alt !== null) element.setAttribute('alt', alt.replace(/\s+/g, ' ').slice(0, MAX_ALT).toWellFormed());
}

function isShown(element: PageElement): boolean {
  const name = element.nodeName.toUpperCase();
  return name === 'HR' || (name === 'IMG' && element.getAttribute('src') !== null);
}

function saysNothing(node: PageElement): boolean {
  return node.nodeType === ELEMENT && node.firstChild === null && !SAYS.has(node.nodeName.toUpperCase());
}

/** GitHub's tables. A table that holds another one, or one column, serves the layout: its cells are paragraphs. */
function addTables(turndown: TurndownService): void {
  turndown.addRule('cell', {
    filter: (node) => isCell(node as never) && isData(node as never),
    replacement: (content) => ` ${onOneLine(content).replaceAll('|', '\\|')} |`,
  });
  turndown.addRule('row', {
    filter: (node) => node.nodeName.toUpperCase() === 'TR' && isData(node as never),
    replacement: (content, node) => {
      const row = node as unknown as PageElement;
      const [first] = tableOf(row)?.querySelectorAll('tr') ?? [];
      const line = `|${content}\n`;
      return row === first ? `${line}|${' --- |'.repeat(cellsOf(row))}\n` : line;
    },
  });
  turndown.addRule('rows', {
    filter: (node) => ['THEAD', 'TBODY', 'TFOOT'].includes(node.nodeName.toUpperCase()) && isData(node as never),
    replacement: (content) => content,
  });
}

/** Not by a regular expression for white space around a line's end: it would look at each run once for each space. */
function onOneLine(content: string): string {
  const lines = content.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

function isCell({ nodeName }: PageElement): boolean {
  return /^t[dh]$/i.test(nodeName);
}

function cellsOf(row: PageElement): number {
  return Array.from(row.childNodes).filter(isCell).length;
}

function tableOf(node: PageElement): PageElement | null {
  let at: PageElement | null = node;
  while (at !== null && at.nodeName.toUpperCase() !== 'TABLE') at = at.parentNode;
  return at;
}

const known = new WeakMap<PageElement, boolean>();

function isData(node: PageElement): boolean {
  const table = tableOf(node);
  if (table === null) return false;
  const found = known.get(table) ?? (table.querySelector('table') === null && hasColumns(table));
  known.set(table, found);
  return found;
}

function hasColumns(table: PageElement): boolean {
  return Array.from(table.querySelectorAll('tr')).some((row) => cellsOf(row) > 1);
}
