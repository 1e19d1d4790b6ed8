import { chainTitle } from '../lib/service.ts';
import { termsOf } from './examples.ts';
import { type Html, html } from './html.ts';
import { renderListings } from './market-listings.ts';
import { readForm, readSearch, renderResults, renderSearchForm } from './market-search.ts';
import type { PageParts } from './pages-deps.ts';
import { renderPage } from './shell.ts';
import { siteOf } from './site.ts';

const DESCRIPTION =
  'Search payable routes: our own, those that sellers listed here, and a third-party catalogue. List yours; it is called once an hour.';

/**
 * Renders `/market`: the search, the listings and the form that submits one. `isBad` is true when the search form has a fault; the page then shows
 * it.
 */
export async function renderMarket(
  { discovery, market, config }: PageParts,
  query: Readonly<Record<string, unknown>>,
): Promise<{ readonly text: string; readonly isBad: boolean }> {
  const asked = readForm(query);
  const search = readSearch(asked);
  const faults = 'limit' in search ? [] : search;
  const text = renderPage({
    site: siteOf(config),
    title: 'Market',
    path: '/market',
    description: DESCRIPTION,
    scripts: ['submit.js', 'copy.js'],
    styles: ['market.css'],
    body: html`<h1>Market</h1>
<p class="lead">Routes that can be paid for by the call on ${chainTitle(config.network)} (${config.network.caip2}): our own, those that sellers listed here, and a third-party catalogue.</p>
<p class="onward"><a href="#listed">Listed by sellers</a> <a href="#submit">List a route of yours</a></p>
<section aria-label="Search">
${renderSearchForm(asked, faults)}
${'limit' in search ? renderResults(await discovery.searchPage(search), asked, search, termsOf(config)) : html`<p class="bad" role="alert">The search has a fault. ${faults.map(({ path, message }) => `${path}: ${message}. `)}</p>`}
</section>
<section class="part" aria-labelledby="listed-title" id="listed">
<header class="head"><h2 id="listed-title">Listed by sellers</h2><p><a href="/v1/market">as JSON</a></p></header>
<p>Anyone may list a route. The service calls each route once an hour without paying. The route must answer 402 and be payable on this chain. One that takes Lightning alone is not listed, because each price here is in USDC. Sellers write the names and descriptions themselves.</p>
<div id="listings">${renderListings(market)}</div>
</section>
${renderSubmit(config.publicOrigin)}`,
  });
  return { text, isBad: faults.length > 0 };
}

/** The form needs a script, because the route takes only JSON. Without scripts the page shows the equivalent command. */
function renderSubmit(origin: string): Html {
  return html`<section class="part" aria-labelledby="submit-title" id="submit">
<header class="head"><h2 id="submit-title">List a route of yours</h2></header>
<p>Enter its address. The service calls it at once, and lists its price and description.</p>
<form class="form" id="submit-form" action="/v1/market" method="post" hidden>
<p class="wide"><label for="url">Address of a priced route</label><input type="url" id="url" name="url" required maxlength="1000" placeholder="https://" autocomplete="off" aria-describedby="submit-result"></p>
<p class="go"><button type="submit">List it</button></p>
<p class="outcome" id="submit-result" role="status"></p>
</form>
<noscript><p>Without scripts, send it yourself:</p>
<pre tabindex="0"><code>curl '${origin}/v1/market' -H 'content-type: application/json' -d '{ "url": "https://…" }'</code></pre></noscript>
</section>`;
}
