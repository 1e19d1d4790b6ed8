import { UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';

/** The readiness checks by name. */
export type Checks = Awaited<ReturnType<PageParts['readiness']>>['checks'];

/** The names of the checks on the page. A check that is not listed here keeps its own name. */
const NAMES: Readonly<Record<string, string>> = {
  ledger: 'Ledger of payments',
  usdc: 'USDC contract',
  settlement: 'Settlement in USDC',
  facilitator: 'Remote facilitator',
  gateway: 'Circle Gateway',
  channels: 'Payment channels',
  lightning: 'Lightning node',
  collector: 'Collector',
  primary: 'Settling process',
};

/** The name of a check for people. */
export function partName(name: string): string {
  return (Object.hasOwn(NAMES, name) ? NAMES[name] : undefined) ?? name;
}

/** Renders every part that payments need: whether it works, and its own description. */
export function renderRails(checks: Checks | null): Html {
  if (checks === null) return html`<p>${UNKNOWN}</p>`;
  return html`<table>
<caption class="unseen">Parts that payments need</caption>
<thead><tr><th scope="col">Part</th><th scope="col">State</th><th scope="col">Detail</th></tr></thead>
<tbody>${Object.entries(checks).map(
    ([
      name,
      { ok, detail },
    ]) => html`<tr><th scope="row" class="part-name">${partName(name)}</th><td class="${ok ? 'good' : 'bad'}">${ok ? 'no fault' : 'fault'}</td><td class="loose">${detail}</td></tr>
`,
  )}</tbody>
</table>`;
}
