import { parseParams } from '../catalogue/params.ts';
import { referenceLink } from '../catalogue/paths.ts';
import { type Entry, SOURCES } from '../discovery/entry.ts';
import type { Market } from '../discovery/market.ts';
import { describeListing, type ListingAnswer } from '../discovery/market-listing.ts';
import { type SearchPage, type SearchParams, searchParams } from '../discovery/search.ts';
import { BadParameter, type ParameterError } from '../errors.ts';
import { chainTitle } from '../lib/service.ts';
import {
  askAtWithCurl,
  buyInTypeScript,
  type CallExample,
  type ExampleTerms,
  quoteScript,
  quoteShell,
  termsOf,
} from './examples.ts';
import {
  type Html,
  html,
  renderCode,
  renderHeads,
  showLink,
  showMeasure,
  showNumber,
  showTime,
  UNKNOWN,
} from './html.ts';
import type { PageParts } from './page-parts.ts';
import { renderPage, siteOf } from './shell.ts';

// `/market`: the search with its results, what sellers listed, the form that submits a route. Texts of sellers are
// untrusted: they are escaped, or quoted in code.

const DESCRIPTION =
  'Search payable routes: our own, those that sellers listed here, and a third-party catalogue. List yours; it is ' +
  'called once an hour.';

/** `isBad`: the search form has a fault, which the page shows. */
export async function renderMarket(
  { discovery, market, config }: PageParts,
  query: Readonly<Record<string, unknown>>,
): Promise<{ readonly text: string; readonly isBad: boolean }> {
  const asked = readForm(query);
  const search = readSearch(asked);
  const faults = 'limit' in search ? [] : search;
  const found =
    'limit' in search
      ? renderResults(await discovery.searchPage(search), asked, search, termsOf(config))
      : html`<p class="bad" role="alert">The search has a fault. ${faults.map(faultText)}</p>`;
  const text = renderPage({
    site: siteOf(config),
    title: 'Market',
    path: '/market',
    description: DESCRIPTION,
    scripts: ['submit.js', 'copy.js'],
    styles: ['market.css'],
    body: html`<h1>Market</h1>
<p class="lead">Routes that can be paid for by the call on ${chainTitle(config.network)} (${config.network.caip2}): \
our own, those that sellers listed here, and a third-party catalogue.</p>
<p class="onward"><a href="#listed">Listed by sellers</a> <a href="#submit">List a route of yours</a></p>
<section aria-label="Search">
${renderSearchForm(asked, faults)}
${found}
</section>
<section class="part" aria-labelledby="listed-title" id="listed">
<header class="head"><h2 id="listed-title">Listed by sellers</h2><p><a href="/v1/market">as JSON</a></p></header>
<p>Anyone may list a route. The service calls each route once an hour without paying. The route must answer 402 and be \
payable on this chain. One that takes Lightning alone is not listed, because each price here is in USDC. Sellers write \
the names and descriptions themselves.</p>
<div id="listings">${renderListings(market)}</div>
</section>
${renderSubmit(config.publicOrigin)}`,
  });
  return { text, isBad: faults.length > 0 };
}

type Asked = Readonly<Record<'q' | 'source' | 'maxPriceUsd' | 'limit' | 'offset', string>>;

/** Entries of one page; also the most that a search gives. */
const PAGE_SIZE = 50;
const SOURCE_NAMES: Readonly<Record<Entry['source'], string>> = {
  own: 'This service',
  market: 'Listed here',
  catalogue: 'Third-party catalogue',
};

/** An empty field counts as absent. */
export function readForm(query: Readonly<Record<string, unknown>>): Asked {
  const text = (name: keyof Asked) => {
    const value = [query[name]].flat()[0];
    return typeof value === 'string' ? value : '';
  };
  const [limit, offset] = [text('limit').trim(), text('offset').trim()];
  return { q: text('q'), source: text('source'), maxPriceUsd: text('maxPriceUsd').trim(), limit, offset };
}

/** The search that the form asks for, checked by the API's rules, or the faults. */
export function readSearch(asked: Asked): SearchParams | readonly ParameterError[] {
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== ''));
  try {
    return parseParams({ params: searchParams }, { limit: String(PAGE_SIZE), ...given }) as SearchParams;
  } catch (error) {
    if (error instanceof BadParameter) return error.errors ?? [];
    throw error;
  }
}

const faultText = ({ path, message }: ParameterError): string => `${path}: ${message}. `;

export function renderSearchForm(asked: Asked, faults: readonly ParameterError[]): Html {
  const faultOf = (name: keyof Asked) => faults.find(({ path }) => path === name)?.message;
  const field = (name: keyof Asked) => {
    const fault = faultOf(name);
    return {
      marks: fault === undefined ? null : html` aria-invalid="true" aria-describedby="${name}-fault"`,
      note: fault === undefined ? null : html`<span class="bad" id="${name}-fault">${fault}</span>`,
    };
  };
  const [q, source, price] = [field('q'), field('source'), field('maxPriceUsd')];
  const options = SOURCES.map((name) => {
    const selected = name === asked.source && html` selected`;
    return html`<option value="${name}"${selected}>${SOURCE_NAMES[name].toLowerCase()}</option>`;
  });
  return html`<form class="form" action="/market" method="get" role="search" aria-label="Payable routes">
<p class="wide"><label for="q">What do you need?</label>\
<input type="search" id="q" name="q" value="${asked.q}" maxlength="200" \
placeholder="gas price, DNS records, Wikipedia …" autocomplete="off"${q.marks}>${q.note}</p>
<p><label for="source">Sold by</label>\
<select id="source" name="source"${source.marks}><option value="">anyone</option>${options}</select>${source.note}</p>
<p><label for="maxPriceUsd">At most, USD</label>\
<input id="maxPriceUsd" name="maxPriceUsd" value="${asked.maxPriceUsd}" inputmode="decimal" size="6" maxlength="30" \
autocomplete="off"${price.marks}>${price.note}</p>
<p class="go"><button type="submit">Search</button></p>
</form>`;
}

function renderResults({ result, total }: SearchPage, asked: Asked, params: SearchParams, terms: ExampleTerms): Html {
  const { query, results, searched } = result;
  const all = searched.ownRoutes + searched.marketListings + searched.catalogue;
  const words = query.trim();
  if (total === 0) return renderNothing(words, all);
  const first = params.offset + 1;
  const range =
    results.length === total
      ? showNumber(total)
      : `${showNumber(first)} to ${showNumber(params.offset + results.length)} of ${showNumber(total)}`;
  const order = words === '' ? ', the cheapest first' : html` for <q>${words}</q>, the best match first`;
  const items = results.map((entry, at) => renderEntry(entry, `result-${first + at}`, terms));
  return html`<p id="found" role="status">${range} of ${showNumber(all)} payable routes${order}.</p>
<ol class="results" start="${first}">${items}</ol>
${renderLeafing(asked, params, total)}`;
}

function renderNothing(words: string, all: number): Html {
  const asked = words === '' ? 'that' : html`<q>${words}</q>`;
  return html`<p id="found" role="status">Nothing sold here answers ${asked}.</p>
<p><a href="/market">All ${showNumber(all)} payable routes</a></p>`;
}

function renderLeafing(asked: Asked, { limit, offset }: SearchParams, total: number): Html | null {
  const link = (to: number, rel: 'prev' | 'next', label: string) => {
    const given = Object.entries({ ...asked, offset: to === 0 ? '' : String(to) }).filter(([, value]) => value !== '');
    const query = new URLSearchParams(given).toString();
    return html`<a rel="${rel}" href="/market${query && `?${query}`}">${label}</a>`;
  };
  const before = offset > 0 && link(Math.max(0, offset - limit), 'prev', 'Previous');
  const after = offset + limit < total && link(offset + limit, 'next', 'Next');
  return before || after ? html`<nav class="onward" aria-label="Pages of results">${before} ${after}</nav>` : null;
}

function renderEntry(entry: Entry, id: string, terms: ExampleTerms): Html {
  const { method, url, label, description, priceUsd, source, host, site, online, rail, params } = entry;
  const required = params.filter((param) => param.required).map(({ name }) => name);
  const link = source === 'own' ? referenceLink(`/${entry.name}`, 'paid') : null;
  return html`<li>
<h3>${link ? html`<a href="${link}">${label}</a>` : label}</h3>
<p class="price"><strong>${priceUsd}</strong> USD</p>
<p class="where"><code>${method} ${url}</code></p>
${description && html`<p>${description}</p>`}
<p class="facts"><span class="tag">${SOURCE_NAMES[source]}</span> ${source === 'own' ? host : showLink(site, host)}
${source === 'market' && html` · <span class="${online ? 'good' : 'bad'}">${online ? 'online' : 'offline'}</span>`}
${rail === 'gateway' && ' · needs a gateway deposit'}
${required.length > 0 && html` · needs <code>${required.join(', ')}</code>`}</p>
${link === null && renderCall(entry, id, terms)}
</li>
`;
}

function renderCall(entry: Entry, id: string, terms: ExampleTerms): Html {
  return html`<details class="call"><summary>How to call it</summary>
${callOf(entry, terms).map(({ language, note, code }) =>
  renderCode({ id: `${id}-${language.toLowerCase()}`, title: language, note, code, level: 5 }),
)}</details>`;
}

/** How another seller's route is priced and bought. No text of the seller ends a quote or is evaluated. */
export function callOf(entry: Entry, { network, asset }: ExampleTerms): CallExample[] {
  const url = exampleUrl(entry);
  const body = entry.method === 'POST' ? JSON.stringify(exampleBody(entry)) : null;
  const posted = body === null ? '' : ` -H 'content-type: application/json' -d ${quoteShell(body)}`;
  const init =
    body === null
      ? ''
      : `, { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${quoteScript(body)} }`;
  const asked: CallExample = { language: 'curl', note: 'what it asks for now', code: askAtWithCurl(url, posted) };
  if (entry.rail !== 'direct' && entry.direct === null) return [asked];
  const target = quoteScript(entry.direct?.url ?? url);
  const maxAmount = String(Math.ceil(Number(entry.direct?.priceUsd ?? entry.priceUsd) * 1e6));
  const code = buyInTypeScript({ network, asset, target, maxAmount, init });
  return [asked, { language: 'TypeScript', note: 'pays at most the listed price, with the stock client', code }];
}

/** The address with the seller's examples of its query. A `{placeholder}` stays for the reader to replace. */
function exampleUrl({ url, params }: Entry): string {
  const query = new URLSearchParams();
  for (const { name, in: place, required, example } of params) {
    if (place === 'query' && (example !== null || required)) query.append(name, textOf(example));
  }
  if (query.size === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${query}`;
}

function exampleBody({ body, params }: Entry): unknown {
  if (body !== null) return body;
  const fields = params.filter(({ in: place, required }) => place === 'body' && required);
  return Object.fromEntries(fields.map(({ name, example }) => [name, example ?? '…']));
}

function textOf(example: Entry['params'][number]['example']): string {
  if (example === null) return '';
  return typeof example === 'string' ? example : JSON.stringify(example);
}

/** The most rows on the page. The JSON route has all. */
const SHOWN = 100;

function renderListings(market: Pick<Market, 'all'>): Html {
  const all = market.all();
  if (all.length === 0) return html`<p>Nothing is listed yet.</p>`;
  const rest = all.length - SHOWN;
  const link = html`<a href="/v1/market?offset=${SHOWN}"><code>/v1/market</code></a>`;
  const more = rest > 0 && html`<p>And ${showNumber(rest)} more in ${link}.</p>`;
  return html`<div class="scroll" role="region" aria-labelledby="listed-title" tabindex="0"><table class="listings">
${renderHeads(['Route', 'USD', 'Now', '7 days', 'Median', 'Called (UTC)'])}
<tbody>${all.slice(0, SHOWN).map(describeListing).map(rowOf)}</tbody>
</table></div>
${more}`;
}

function rowOf({ label, method, url, site, host, priceUsd, online, problem, ...calls }: ListingAnswer): Html {
  const { uptime7d, calls7d, medianLatencyMs, checkedAt } = calls;
  const now = online ? html`<span class="good">online</span>` : html`<span class="bad">offline</span>`;
  return html`<tr><th scope="row" class="route">${label} <small>${showLink(site, host)}</small><br>\
<code class="address">${method} ${url}</code></th>
<td class="number">${priceUsd}</td>
<td>${now}${problem && html` <small>${problem}</small>`}</td>
<td>${uptime7d === null ? UNKNOWN : `${showNumber(uptime7d * 100)} % of ${showNumber(calls7d)}`}</td>
<td>${showMeasure(medianLatencyMs, 'ms')}</td>
<td>${showTime(checkedAt)}</td></tr>
`;
}

/** The form needs a script, because the route takes only JSON. Without scripts the page shows the command. */
function renderSubmit(origin: string): Html {
  return html`<section class="part" aria-labelledby="submit-title" id="submit">
<header class="head"><h2 id="submit-title">List a route of yours</h2></header>
<p>Enter its address. The service calls it at once, and lists its price and description.</p>
<form class="form" id="submit-form" action="/v1/market" method="post" hidden>
<p class="wide"><label for="url">Address of a priced route</label>\
<input type="url" id="url" name="url" required maxlength="1000" placeholder="https://" autocomplete="off" \
aria-describedby="submit-result"></p>
<p class="go"><button type="submit">List it</button></p>
<p class="outcome" id="submit-result" role="status"></p>
</form>
<noscript><p>Without scripts, send it yourself:</p>
<pre tabindex="0"><code>curl '${origin}/v1/market' -H 'content-type: application/json' \
-d '{ "url": "https://…" }'</code></pre></noscript>
</section>`;
}
