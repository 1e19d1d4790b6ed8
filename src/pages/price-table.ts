import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, listedPath, pathOn, referenceLink, surfacesOf } from '../catalogue/paths.ts';
import { type Html, html } from './html.ts';

/** Groups of the price table, by the first segment of their paths, in the order shown. */
const FAMILIES: readonly { readonly title: string; readonly segments: readonly string[] }[] = [
  { title: 'The chain, as collected', segments: ['fees', 'deploys', 'rpc', 'fx', 'market'] },
  { title: 'The chain, read live', segments: ['chain'] },
  { title: 'Web pages', segments: ['web'] },
  { title: 'Packages', segments: ['packages'] },
  { title: 'Domains', segments: ['domains'] },
  { title: 'Currencies', segments: ['currency'] },
  { title: 'Encyclopedia', segments: ['wiki'] },
  { title: 'Checking us', segments: ['selftest'] },
];

type Entry = Endpoint<never>;

/** Renders every priced route with its price. A group that is not listed here comes last, under its own name. */
export function renderPrices(catalogue: readonly Entry[]): Html {
  const sold = catalogue.filter(({ access }) => access === 'paid');
  const named = new Set(FAMILIES.flatMap(({ segments }) => segments));
  const others = [...new Set(sold.map(segmentOf))].filter((segment) => !named.has(segment));
  const families = [...FAMILIES, ...others.map((segment) => ({ title: segment, segments: [segment] }))];
  return html`<table class="prices">
<caption class="unseen">Priced routes</caption>
<thead><tr><th scope="col">Route</th><th scope="col">What it answers</th><th scope="col" class="number">USD a call</th></tr></thead>
${families.map(({ title, segments }) =>
  groupOf(
    title,
    sold.filter((entry) => segments.includes(segmentOf(entry))),
  ),
)}
</table>`;
}

/** Renders the free routes as links. */
export function renderFreeRoutes(catalogue: readonly Entry[]): Html {
  return html`<ul class="routes">${entriesOn(catalogue, 'free').map((entry) => {
    const path = pathOn(entry, 'free');
    return html`<li><a href="${path}" title="${entry.summary}"><code>${path}</code></a></li>
`;
  })}</ul>`;
}

function groupOf(title: string, entries: readonly Entry[]): Html | null {
  if (entries.length === 0) return null;
  return html`<tbody>
<tr class="family"><th colspan="3" scope="rowgroup">${title}</th></tr>
${entries.map(rowOf)}</tbody>`;
}

function rowOf(entry: Entry): Html {
  const surfaces = surfacesOf(entry);
  const only = surfaces.length === 1 && (surfaces[0] === 'paid' ? 'USDC only' : 'bitcoin only');
  return html`<tr><th scope="row" class="route"><a href="${referenceLink(entry.path, surfaces[0] ?? 'free')}"><code>${listedPath(entry)}</code></a></th><td class="what">${entry.summary}${only && html` <small class="tag">${only}</small>`}</td><td class="number">${entry.price?.usd}</td></tr>
`;
}

function segmentOf({ path }: Entry): string {
  return path.split('/')[1] ?? '';
}
