import type { Market } from '../discovery/market.ts';
import { describeListing, type ListingAnswer } from '../discovery/market-listing.ts';
import { showLink, showMeasure, showNumber, showTime, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';

/** The most rows on the page. The JSON route has all. */
const SHOWN = 100;

/** Renders the listings of third parties, with the results of their calls. */
export function renderListings(market: Pick<Market, 'all'>): Html {
  const all = market.all();
  if (all.length === 0) return html`<p>Nothing is listed yet.</p>`;
  const rest = all.length - SHOWN;
  return html`<div class="scroll" role="region" aria-labelledby="listed-title" tabindex="0"><table class="listings">
<thead><tr><th scope="col">Route</th><th scope="col">USD</th><th scope="col">Now</th><th scope="col">7 days</th><th scope="col">Median</th><th scope="col">Called (UTC)</th></tr></thead>
<tbody>${all.slice(0, SHOWN).map(describeListing).map(rowOf)}</tbody>
</table></div>
${rest > 0 && html`<p>And ${showNumber(rest)} more in <a href="/v1/market?offset=${SHOWN}"><code>/v1/market</code></a>.</p>`}`;
}

function rowOf({ label, method, url, site, host, priceUsd, online, problem, ...calls }: ListingAnswer): Html {
  const { uptime7d, calls7d, medianLatencyMs, checkedAt } = calls;
  return html`<tr><th scope="row" class="route">${label} <small>${showLink(site, host)}</small><br><code class="address">${method} ${url}</code></th>
<td class="number">${priceUsd}</td>
<td>${online ? html`<span class="good">online</span>` : html`<span class="bad">offline</span>`}${problem && html` <small>${problem}</small>`}</td>
<td>${uptime7d === null ? UNKNOWN : `${showNumber(uptime7d * 100)} % of ${showNumber(calls7d)}`}</td>
<td>${showMeasure(medianLatencyMs, 'ms')}</td>
<td>${showTime(checkedAt)}</td></tr>
`;
}
