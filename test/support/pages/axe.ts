import { readFileSync } from 'node:fs';
import type { CDPSession, Page } from 'playwright-core';

/** A rule that a page breaks, with the elements at fault and the fault of each. */
export interface Finding {
  readonly rule: string;
  readonly impact: string;
  readonly help: string;
  readonly elements: readonly string[];
}

interface AuditOptions {
  /** A selector: only what it matches is checked. Without it, the whole document. */
  readonly within?: string;
  /** Only the rules that read colours. */
  readonly coloursOnly?: boolean;
  /**
   * A selector of parts that one template draws. Most of them are taken out of the document while it is checked, because the time of a check grows with
   * every element of the document, also of those that are hidden or outside of `within`. What is left: with `within`, the parts that hold what it
   * matches; otherwise each part that has a new kind of element, by tag and classes.
   */
  readonly alike?: string;
}

/** Read, not imported: Node would run it for nothing. The short form is less than half as long to send to a page and to parse there. */
const SOURCE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** An expression that turns off the rules whose findings would be left out below. One of them, `region`, is asked of every element of a page. */
const WITHOUT_LESSER_RULES = `Object.fromEntries(axe._audit.rules.filter(({ impact }) => impact === 'minor' || impact === 'moderate')
  .map(({ id }) => [id, { enabled: false }]))`;

/** The parts that are taken out, as an expression. */
const dispensable = ({ within, alike }: AuditOptions) => `(() => {
  if (${alike === undefined}) return [];
  const parts = [...document.querySelectorAll(${JSON.stringify(alike)})];
  if (${within !== undefined}) {
    const checked = [...document.querySelectorAll(${JSON.stringify(within)})];
    return parts.filter((part) => !checked.some((one) => part.contains(one) || one.contains(part)));
  }
  const seen = new Set();
  const isNew = (one) => seen.size < seen.add(one.tagName + ' ' + one.getAttribute('class')).size;
  return parts.filter((part) => [part, ...part.querySelectorAll('*')].filter(isNew).length === 0);
})()`;

/** Collects violations alone: an entry for each of a page's thousands of faultless elements costs as much as the checks. */
const collect = (options: AuditOptions) => `(async () => {
  const takenOut = ${dispensable(options)}.map((part) => {
    const place = document.createComment('');
    part.replaceWith(place);
    return [part, place];
  });
  try {
    const { violations } = await axe.run(${options.within ? JSON.stringify(options.within) : 'document'}, {
      resultTypes: ['violations'],
      ${options.coloursOnly ? `runOnly: ${JSON.stringify(COLOUR_RULES)}` : `rules: ${WITHOUT_LESSER_RULES}`},
    });
    return violations.map(({ id, impact, help, nodes }) => ({
      rule: id, impact, help, elements: nodes.map((node) => node.target.join(' ') + ': ' + node.failureSummary),
    }));
  } finally {
    for (const [part, place] of takenOut) place.replaceWith(part);
  }
})()`;

/** One for each page: as long as it is attached, a document keeps its isolated world, and axe in it. */
const attached = new WeakMap<Page, Promise<CDPSession>>();

/**
 * The serious and critical findings of axe-core on the page as it is now. Rejects when `within` matches nothing.
 * It runs in an isolated world. So the page's CSP does not block it and need not be loosened, and the page cannot see it.
 */
export async function auditAccessibility(page: Page, options: AuditOptions = {}): Promise<Finding[]> {
  const attaching = attached.get(page) ?? page.context().newCDPSession(page);
  attached.set(page, attaching);
  const devtools = await attaching;
  const { frameTree } = await devtools.send('Page.getFrameTree');
  const world = await devtools.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  const contextId = world.executionContextId;
  const evaluate = async (expression: string) => {
    const options = { expression, contextId, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await devtools.send('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  if (await evaluate(`typeof axe === 'undefined'`)) await evaluate(`${SOURCE}; undefined`);
  const findings: Finding[] = await evaluate(collect(options));
  return findings.filter(({ impact }) => impact === 'serious' || impact === 'critical');
}
