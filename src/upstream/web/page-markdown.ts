import TurndownService from 'turndown';
import { clipText } from '../../lib/untrusted.ts';
import { MAX_TEXT, type PageContent } from './page-content.ts';
import type { PageElement } from './page-dom.ts';
import { prune } from './page-prune.ts';
import { CONTROLS, isDeeper } from './page-text.ts';

/** The writer calls itself for each level. Pages for readers stay below 60. */
const MAX_DEPTH = 128;
/** Enough for the text of an answer. The writer copies what it has at each node, and its time grows with the product of these bounds. */
const LIMITS = { maxNodes: 6000, maxUnits: 24_000 };

type Markdown = Pick<PageContent, 'markdown' | 'markdownTruncated' | 'markdownMissing'>;

const NONE: Markdown = { markdown: null, markdownTruncated: false, markdownMissing: 'unusual_markup' };

const service = new TurndownService({
  ...{ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*', hr: '---' },
});
addTables(service);

/** A part of a page in Markdown, with absolute links. Changes the part. */
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

/** Tables as GitHub writes them. A table that holds another one, or one column, serves the layout: its cells are paragraphs. */
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

/** Not by a regular expression for white space around a line's end: it would look at each run once for each of its spaces. */
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

/** Whether the table around a node holds data. */
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
