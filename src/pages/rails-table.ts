import { UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';
import { renderTimes } from './sources-table.ts';

/** The readiness checks by name. */
export type Checks = Awaited<ReturnType<PageParts['readiness']>>['checks'];

/** The names of the checks on the page. A check that is not listed here keeps its own name. */
const NAMES: Readonly<Record<string, string>> = {
  ledger: 'Ledger of payments',
  usdc: 'USDC contract',
  rpc: 'RPC providers',
  settlement: 'Settlement in USDC',
  facilitator: 'Remote facilitator',
  gateway: 'Circle Gateway',
  channels: 'Payment channels',
  lightning: 'Lightning',
  clock: 'Clock',
  instances: 'Instances',
  collector: 'Collector',
  primary: 'Settling process',
};

/** The name of a check for people. */
export function partName(name: string): string {
  return (Object.hasOwn(NAMES, name) ? NAMES[name] : undefined) ?? name;
}

/** Renders every part that payments need: whether it works, when it last did and did not, and its own description. */
export function renderRails(checks: Checks | null, { outcomeOf }: PageParts['readiness'], isStarting: boolean): Html {
  if (checks === null) return html`<p>${UNKNOWN}</p>`;
  return html`<div class="scroll" role="region" aria-label="Parts that payments need" tabindex="0"><table class="cards">
<caption class="unseen">Parts that payments need</caption>
<thead><tr><th scope="col">Part</th><th scope="col">State</th><th scope="col">Last success (UTC)</th><th scope="col">Last failure (UTC)</th><th scope="col">Detail</th></tr></thead>
<tbody>${Object.entries(checks)
    .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
    .map(([name, { ok, detail }]) => {
      const outcome = outcomeOf(name);
      const state = ok ? 'good' : isStarting && outcome?.okAtMs == null ? 'starting' : 'bad';
      return html`<tr><th scope="row" class="part-name">${partName(name)}</th><td class="${state}">${STATES[state]}</td>${renderTimes(outcome)}<td class="loose" data-label="Detail">${detail}</td></tr>
`;
    })}</tbody>
</table></div>`;
}

/** The page has a section of its own for what is collected. */
const SHOWN_ELSEWHERE = new Set(['collector']);

const STATES = { good: 'no fault', starting: 'starting', bad: 'fault' } as const;
