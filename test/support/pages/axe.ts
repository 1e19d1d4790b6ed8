import axe from 'axe-core';
import type { Page } from 'playwright-core';

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
  /** Whether the rules that read colours are asked alone. By default all rules are asked. */
  readonly colours?: 'only';
}

const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** Collects violations alone: an entry for each of a page's thousands of faultless elements costs as much as the checks. */
const collect = ({
  within,
  colours,
}: AuditOptions) => `axe.run(${within ? JSON.stringify(within) : 'document'}, ${JSON.stringify({
  resultTypes: ['violations'],
  ...(colours === 'only' && { runOnly: COLOUR_RULES }),
})}).then(({ violations }) => violations.map(({ id, impact, help, nodes }) => ({
  rule: id, impact, help, elements: nodes.map((node) => node.target.join(' ') + ': ' + node.failureSummary),
})))`;

/**
 * The serious and critical findings of axe-core on the page as it is now. Rejects when `within` matches nothing.
 * It runs in an isolated world. So the page's CSP does not block it and need not be loosened, and the page cannot see it.
 */
export async function auditAccessibility(page: Page, options: AuditOptions = {}): Promise<Finding[]> {
  const devtools = await page.context().newCDPSession(page);
  const { frameTree } = await devtools.send('Page.getFrameTree');
  const world = await devtools.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  const contextId = world.executionContextId;
  const evaluate = async (expression: string) => {
    const options = { expression, contextId, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await devtools.send('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await evaluate(`${axe.source}; undefined`);
  const findings: Finding[] = await evaluate(collect(options));
  await devtools.detach();
  return findings.filter(({ impact }) => impact === 'serious' || impact === 'critical');
}
