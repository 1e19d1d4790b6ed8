import { parseParams } from '../catalogue/params.ts';
import { referenceLink } from '../catalogue/paths.ts';
import { type Entry, SOURCES } from '../discovery/entry.ts';
import { type SearchPage, type SearchParams, searchParams } from '../discovery/search.ts';
import { BadParameter, type ParameterError } from '../errors.ts';
import { renderCode } from './code-block.ts';
import type { ExampleTerms } from './examples.ts';
import { showLink, showNumber } from './format.ts';
import { type Html, html } from './html.ts';
import { callOf } from './market-call.ts';

/** The form's values as they were typed. */
export type Asked = Readonly<Record<'q' | 'source' | 'maxPriceUsd' | 'limit' | 'offset', string>>;

/** Entries of one page; also the most that a search gives. */
const PAGE_SIZE = 50;
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
<p class="wide"><label for="q">What do you need?</label><input type="search" id="q" name="q" value="${asked.q}" maxlength="200" placeholder="gas price, DNS records, Wikipedia …" autocomplete="off"${q.marks}>${q.note}</p>
<p><label for="source">Sold by</label><select id="source" name="source"${source.marks}><option value="">anyone</option>${SOURCES.map(
    (name) =>
      html`<option value="${name}"${name === asked.source && html` selected`}>${SOURCE_NAMES[name].toLowerCase()}</option>`,
  )}</select>${source.note}</p>
<p><label for="maxPriceUsd">At most, USD</label><input id="maxPriceUsd" name="maxPriceUsd" value="${asked.maxPriceUsd}" inputmode="decimal" size="6" maxlength="30" autocomplete="off"${price.marks}>${price.note}</p>
<p class="go"><button type="submit">Search</button></p>
</form>`;
}

/** Renders one page of the results, the best first. Without a query the cheapest come first. */
export function renderResults(
  { result, total }: SearchPage,
  asked: Asked,
  params: SearchParams,
  terms: ExampleTerms,
): Html {
  const { query, results, searched } = result;
  const all = searched.ownRoutes + searched.marketListings + searched.catalogue;
  const words = query.trim();
  if (total === 0) return renderNothing(words, all);
  const first = params.offset + 1;
  const range =
    results.length === total
      ? showNumber(total)
      : `${showNumber(first)} to ${showNumber(params.offset + results.length)} of ${showNumber(total)}`;
  return html`<p id="found" role="status">${range} of ${showNumber(all)} payable routes${words !== '' && html` for <q>${words}</q>`}, ${words === '' ? 'the cheapest first' : 'the best match first'}.</p>
<ol class="results" start="${first}">${results.map((entry, at) => renderEntry(entry, `result-${first + at}`, terms))}</ol>
${renderLeafing(asked, params, total)}`;
}

function renderNothing(words: string, all: number): Html {
  return html`<p id="found" role="status">Nothing sold here answers ${words === '' ? 'that' : html`<q>${words}</q>`}.</p>
<p><a href="/market">All ${showNumber(all)} payable routes</a></p>`;
}

/** Links to the pages before and after this one; nothing when there is one page only. */
function renderLeafing(asked: Asked, { limit, offset }: SearchParams, total: number): Html | null {
  const link = (to: number, rel: 'prev' | 'next', label: string) => {
    const given = Object.entries({ ...asked, offset: to === 0 ? '' : String(to) }).filter(([, value]) => value !== '');
    const query = new URLSearchParams(given).toString();
    return html`<a rel="${rel}" href="/market${query && `?${query}`}">${label}</a>`;
  };
  const [before, after] = [offset > 0, offset + limit < total];
  if (!before && !after) return null;
  return html`<nav class="onward" aria-label="Pages of results">${before && link(Math.max(0, offset - limit), 'prev', 'Previous')} ${after && link(offset + limit, 'next', 'Next')}</nav>`;
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

/** How another seller's route is called. Our own routes are in the reference. */
function renderCall(entry: Entry, id: string, terms: ExampleTerms): Html {
  return html`<details class="call"><summary>How to call it</summary>
${callOf(entry, terms).map(({ language, note, code }) =>
  renderCode({ id: `${id}-${language.toLowerCase()}`, title: language, note, code, level: 5 }),
)}</details>`;
}
