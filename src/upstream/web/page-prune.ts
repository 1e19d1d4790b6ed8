import type { PageElement } from './page-dom.ts';
import { webUrl } from './page-links.ts';
import { isUnseen } from './page-text.ts';

const ELEMENT = 1;
const TEXT = 3;
/** Elements that say something without text. */
const SAYS = new Set(['IMG', 'BR', 'HR', 'TD', 'TH']);
/** Attributes that Markdown has a place for. A title only repeats, and is the author's. */
const KEPT: Record<string, readonly string[]> = { A: ['href'], IMG: ['src', 'alt'], CODE: ['class'], OL: ['start'] };
const DROPPED = ['href', 'src', 'alt', 'title', 'class', 'start'];
const MAX_ALT = 200;

interface PruneLimits {
  readonly maxNodes: number;
  readonly maxUnits: number;
}

/**
 * Leaves of a tree what its text in Markdown is made of: what a reader sees, with absolute http(s) links and pictures, and no element that says nothing.
 * Cuts it after so many nodes or units of text, because the writer's time grows with their product. Returns whether it cut. Uses no call stack.
 */
export function prune(root: PageElement, base: string, { maxNodes, maxUnits }: PruneLimits): boolean {
  const order: PageElement[] = [];
  let units = 0;
  let cut = false;
  const stack: PageElement[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    cut ||= order.length >= maxNodes || units >= maxUnits;
    if (cut || !isKept(node)) {
      if (node !== root) node.remove();
      continue;
    }
    order.push(node);
    if (node.nodeType === TEXT) units += node.textContent?.length ?? 0;
    else cleanAttributes(node, base);
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

function saysNothing(node: PageElement): boolean {
  return node.nodeType === ELEMENT && node.firstChild === null && !SAYS.has(node.nodeName.toUpperCase());
}

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
