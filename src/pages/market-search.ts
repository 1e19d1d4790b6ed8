import { parseParams } from '../catalogue/params.ts';
import { type Entry, SOURCES } from '../discovery/entry.ts';
import type { SearchResult } from '../discovery/search.ts';
import { type SearchParams, searchParams } from '../discovery/search-params.ts';
import { BadParameter, type ParameterError } from '../errors.ts';
import { showLink, showNumber } from './format.ts';
import { type Html, html } from './html.ts';

/** The form's values as they were typed. */
export type Asked = Readonly<Record<'q' | 'source' | 'maxPriceUsd', string>>;

/** Entries of an answer. The next constant is for the page without a search. */
const MAX_FOUND = 50;
const MAX_UNFILTERED = 10;
const SOURCE_NAMES: Readonly<Record<Entry['source'], string>> = {
  own: 'This service',
  market: 'Listed here',
  catalogue: 'Third-party catalogue',
};

/** Reads the form. An empty field counts as absent. */
export function readForm(query: Readonly<Record<string, unknown>>): Asked {
  const text = (name: keyof Asked) => {
    const value = [query[name]].flat()[0];
    return typeof value === 'string' ? value : '';
  };
  return { q: text('q'), source: text('source'), maxPriceUsd: text('maxPriceUsd').trim() };
}

/** The search that the form asks for, checked by the API's rules, or the faults. */
export function readSearch(asked: Asked): SearchParams | readonly ParameterError[] {
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== ''));
  const limit = Object.keys(given).length === 0 ? MAX_UNFILTERED : MAX_FOUND;
  try {
    return parseParams({ params: searchParams }, { ...given, limit: String(limit) }) as SearchParams;
  } catch (error) {
    if (error instanceof BadParameter) return error.errors ?? [];
    throw error;
  }
}

/** Renders the form with its values and with the faults beside their fields. */
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
  return html`<form class="form" action="/market" method="get" role="search" aria-label="Payable routes">
<p class="wide"><label for="q">What do you need?</label><input type="search" id="q" name="q" value="${asked.q}" maxlength="200" placeholder="weather, gas price, pdf to text …" autocomplete="off"${q.marks}>${q.note}</p>
<p><label for="source">Sold by</label><select id="source" name="source"${source.marks}><option value="">anyone</option>${SOURCES.map(
    (name) =>
      html`<option value="${name}"${name === asked.source && html` selected`}>${SOURCE_NAMES[name].toLowerCase()}</option>`,
  )}</select>${source.note}</p>
<p><label for="maxPriceUsd">At most, USD</label><input id="maxPriceUsd" name="maxPriceUsd" value="${asked.maxPriceUsd}" inputmode="decimal" size="6" maxlength="30" autocomplete="off"${price.marks}>${price.note}</p>
<p class="go"><button type="submit">Search</button></p>
</form>`;
}

/** Renders the results, the best first. Without a query the cheapest come first. */
export function renderResults({ query, count, results, searched }: SearchResult, { limit }: SearchParams): Html {
  const all = showNumber(searched.ownRoutes + searched.marketListings + searched.catalogue);
  const hasWords = query.trim() !== '';
  const found = count === limit && count > 1 ? html`The ${hasWords ? 'best' : 'cheapest'} ${count}` : showNumber(count);
  return html`<p id="found" role="status">${found} of ${all} payable routes${hasWords && html` for <q>${query}</q>`}.</p>
<ol class="results">${results.map(renderEntry)}</ol>`;
}

function renderEntry(entry: Entry): Html {
  const { method, url, label, description, priceUsd, source, host, site, online, rail, params } = entry;
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return html`<li>
<h3>${label}</h3>
<p class="price"><strong>${priceUsd}</strong> USD</p>
<p class="where"><code>${method} ${url}</code></p>
${description && html`<p>${description}</p>`}
<p class="facts"><span class="tag">${SOURCE_NAMES[source]}</span> ${source === 'own' ? host : showLink(site, host)}
${source === 'market' && html` · <span class="${online ? 'good' : 'bad'}">${online ? 'online' : 'offline'}</span>`}
${rail === 'gateway' && ' · needs a gateway deposit'}
${required.length > 0 && html` · needs <code>${required.join(', ')}</code>`}</p>
</li>
`;
}
