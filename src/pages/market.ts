import { type Html, html } from './html.ts';
import { renderListings } from './market-listings.ts';
import { readForm, readSearch, renderResults, renderSearchForm } from './market-search.ts';
import type { PageParts } from './pages-deps.ts';
import { renderPage } from './shell.ts';

const DESCRIPTION =
  'Search payable routes: our own, those that sellers listed here, and a third-party catalogue. List yours; it is called once an hour.';

/** `/market`: search, what is listed, and the way to list. `isBad` when the form held what no search takes; the page then says what. */
export async function renderMarket(
  { discovery, market, config }: PageParts,
  query: Readonly<Record<string, unknown>>,
): Promise<{ readonly text: string; readonly isBad: boolean }> {
  const asked = readForm(query);
  const search = readSearch(asked);
  const faults = 'limit' in search ? [] : search;
  const text = renderPage({
    title: 'Market',
    path: '/market',
    description: DESCRIPTION,
    scripts: ['submit.js'],
    styles: ['market.css'],
    body: html`<h1>Market</h1>
<p class="lead">Routes that can be paid for by the call on ${config.network.caip2}: our own, those that sellers listed here, and a third-party catalogue.</p>
<p class="onward"><a href="#listed">Listed by sellers</a> <a href="#submit">List a route of yours</a></p>
<section aria-label="Search">
${renderSearchForm(asked, faults)}
${'limit' in search ? renderResults(await discovery.search(search), search) : html`<p class="bad" role="alert">That cannot be searched for; see the marked field.</p>`}
</section>
<section class="part" aria-labelledby="listed-title" id="listed">
<header class="head"><h2 id="listed-title">Listed by sellers</h2><p><a href="/v1/market">as JSON</a></p></header>
<p>Anyone may list a route. Each is called once an hour, unpaid: it must answer 402 and be payable on this chain. Names and descriptions are the sellers’ own words.</p>
<div id="listings">${renderListings(market)}</div>
</section>
${renderSubmit(config.publicOrigin)}`,
  });
  return { text, isBad: faults.length > 0 };
}

/** The form needs a script, because the route takes JSON and nothing else; without one there is the command that does the same. */
function renderSubmit(origin: string): Html {
  return html`<section class="part" aria-labelledby="submit-title" id="submit">
<header class="head"><h2 id="submit-title">List a route of yours</h2></header>
<p>Its address is all that is needed: it is called now, and what it asks and says of itself is shown.</p>
<form class="form" id="submit-form" action="/v1/market" method="post" hidden>
<p class="wide"><label for="url">Address of a priced route</label><input type="url" id="url" name="url" required maxlength="1000" placeholder="https://" autocomplete="off" aria-describedby="submit-result"></p>
<p class="go"><button type="submit">List it</button></p>
<p class="outcome" id="submit-result" role="status"></p>
</form>
<noscript><p>Without scripts, send it yourself:</p>
<pre tabindex="0"><code>curl '${origin}/v1/market' -H 'content-type: application/json' -d '{ "url": "https://…" }'</code></pre></noscript>
</section>`;
}
