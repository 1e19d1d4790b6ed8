import { formatUnits } from '../lib/units.ts';
import type { RailSum } from '../payment/settled-today.ts';
import { showNumber, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';

const USDC_DECIMALS = 6;
const MSAT_DECIMALS = 3;

const RAILS: Readonly<
  Record<RailSum['rail'], { readonly name: string; readonly unit: string; readonly decimals: number }>
> = {
  usdc: { name: 'USDC', unit: 'USDC', decimals: USDC_DECIMALS },
  gateway: { name: 'USDC through the Gateway', unit: 'USDC', decimals: USDC_DECIMALS },
  channels: { name: 'USDC over payment channels', unit: 'USDC', decimals: USDC_DECIMALS },
  lightning: { name: 'Lightning', unit: 'sats', decimals: MSAT_DECIMALS },
};

type Facilitator = Awaited<ReturnType<PageParts['facilitator']['descriptor']>>;

/**
 * Renders the payments and their sums since midnight UTC by rail, and the facilitator's claims for sellers. `sums` is null when the ledger did not
 * answer.
 */
export function renderSettled(sums: readonly RailSum[] | null, facilitator: Facilitator | null): Html {
  return html`<table>
<caption>Since midnight UTC; the self-test’s purchases count</caption>
<thead><tr><th scope="col">Rail</th><th scope="col">Payments</th><th scope="col">Sum</th></tr></thead>
<tbody>${sums?.map(({ rail, count, amount }) => {
    const { name, unit, decimals } = RAILS[rail];
    return html`<tr id="settled-${rail}"><th scope="row">${name}</th><td class="number">${showNumber(count)}</td><td class="number">${formatUnits(amount, decimals)} ${unit}</td></tr>
`;
  })}
<tr><th scope="row">Facilitator, for sellers</th><td class="number">${facilitator ? showNumber(facilitator.limits.settledToday) : UNKNOWN}</td><td class="number">–</td></tr></tbody>
</table>
${sums === null && html`<p>The ledger gave no answer: ${UNKNOWN}.</p>`}`;
}
