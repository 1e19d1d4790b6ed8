import type { Answers } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, listedPath, pathOn, referenceLink, surfacesOf } from '../catalogue/paths.ts';
import {
  askWithCurl,
  type ExampleCall,
  type ExampleTerms,
  exampleCall,
  payInTypeScript,
  readInPython,
  termsOf,
} from './examples.ts';
import { type Html, html, renderCode, renderPair, showDecimal, showMeasure, showTimeOfDay, UNKNOWN } from './html.ts';
import { LIVE_SWITCH, renderFeeChart, renderLastRun, renderLatencyChart, renderStrip } from './live.ts';
import type { PageParts } from './page-parts.ts';
import { renderPage, siteOf } from './shell.ts';

// `/`, in the order of the page: what the service is, why to pay, live charts, how to pay, the prices, the self-tests.

const DESCRIPTION =
  'Chain and public data by the call: free summaries, priced detail paid in USDC over x402 or in bitcoin over ' +
  'Lightning (x402, L402, MPP). No signup, no key.';

/** Renders `/`. A part that cannot be read is shown as not known. */
export async function renderLanding(parts: PageParts): Promise<string> {
  const [fees, estimate, rpc, health, selfTest] = await Promise.all([
    parts.read('/fees'),
    parts.read('/fees/estimate'),
    parts.read('/rpc'),
    parts.read('/health'),
    parts.read('/selftest'),
  ]);
  const { catalogue } = parts;
  const { name: chain, caip2 } = parts.config.network;
  return renderPage({
    site: siteOf(parts.config),
    title: 'percall: data by the call',
    path: '/',
    description: DESCRIPTION,
    scripts: ['uplot.js', 'charts.js', 'live.js', 'copy.js'],
    styles: ['uplot.css', 'figures.css', 'landing.css'],
    body: html`<section class="hero">
<div>
<h1>Data by the call</h1>
<p class="lead">Free summaries for everyone. Detail for ${priceRange(catalogue)} USD a call: fees, deploys, wallets \
and transactions of ${chain}; web pages, packages, domains, currencies, Wikipedia.
Paid in USDC over <a href="https://www.x402.org" rel="noopener noreferrer">x402</a> or in bitcoin over Lightning \
(x402, L402 or MPP). No signup, no key: the payment is the credential.</p>
<p class="promise">A failing call costs nothing, one payment buys exactly one answer, and a buyer who paid gets the \
answer, whatever crashed in between.</p>
<p class="actions"><a class="button" href="#pay">Pay for a call</a> <a href="#prices">Prices</a> \
<a href="/market">Market</a> <a href="/docs">Reference</a></p>
</div>
${renderNow(fees, health, selfTest)}
</section>
${renderWhy(estimate)}
<section class="part" aria-labelledby="charts-title">
<header class="head"><h2 id="charts-title">Live from ${chain} <small>${caip2}</small></h2>${LIVE_SWITCH}</header>
<div class="charts">${renderFeeChart(parts, fees)}${renderLatencyChart(parts, rpc)}</div>
</section>
${renderPaying(parts)}
<section class="part" aria-labelledby="prices-title" id="prices">
<header class="head"><h2 id="prices-title">Prices</h2></header>
<p>The same routes are sold under <code>/v1/lightning</code> for bitcoin, at the median rate of three exchanges, \
rounded up to a whole sat (<a href="/v1/lightning">rate and node</a>).
Their 402 asks for one invoice over x402, L402 and MPP, so that a wallet of any of them can pay it.
A bad parameter, a failing source and a mistake of ours are never charged.</p>
${renderPrices(catalogue)}
<h3 class="free">Free</h3>
${renderFreeRoutes(catalogue)}
</section>
<section class="part" aria-labelledby="selftest-title">
<header class="head"><h2 id="selftest-title">Does it work?</h2><p><a href="/status">Status</a></p></header>
<p>Once an hour the service buys its own endpoint with its own wallet, and calls one that must fail without \
charging. That is not customer activity.</p>
<div id="selftest" data-live>${renderStrip(selfTest)}${renderLastRun(selfTest)}</div>
</section>`,
  });
}

function priceRange(catalogue: readonly Endpoint<never>[]): string {
  const prices = entriesOn(catalogue, 'paid').flatMap(({ price }) => price ?? []);
  const sorted = prices.sort((a, b) => (a.units < b.units ? -1 : 1));
  const [least, most] = [sorted[0]?.usd ?? '0', sorted.at(-1)?.usd ?? '0'];
  return least === most ? least : `${least} to ${most}`;
}

function renderNow(
  fees: Answers['/fees'] | null,
  health: Answers['/health'] | null,
  selfTest: Answers['/selftest'] | null,
): Html {
  const run = selfTest?.recent[0];
  const result = run?.ok ? html`<span class="good">passed</span>` : html`<span class="bad">failed</span>`;
  return html`<dl class="pairs" id="now" data-live>
${renderPair('Base fee', fees ? `${showDecimal(fees.baseFee.gwei, 4)} gwei` : UNKNOWN)}
${renderPair('A USDC transfer', fees ? `${showDecimal(fees.transferCostUsdc.erc20, 6)} USDC` : UNKNOWN)}
${renderPair('Head block', health?.freshness.head ?? UNKNOWN)}
${renderPair('Collector behind it', showMeasure(health?.freshness.lagSeconds, 's'))}
${renderPair('Last self-test', run ? html`${result} ${showTimeOfDay(run.at)} UTC` : UNKNOWN)}
</dl>`;
}

function renderWhy(estimate: Answers['/fees/estimate'] | null): Html {
  const { detail } = estimate ?? {};
  const shown = estimate ? JSON.stringify(estimate, null, 2) : UNKNOWN;
  return html`<section class="part" aria-labelledby="why-title">
<header class="head"><h2 id="why-title">Why pay?</h2></header>
<div class="why">
<div><p>A free answer summarises what the service has collected. A paid one gives the detail behind it, or reads the
chain, a web page, a registry or a resolver at that moment, for your question. Every answer names its source.
There is no account to open and no key to guard: you pay for the one answer that you get.</p>
${detail && html`<p>The free answer here has a paid twin for ${detail.priceUsd} USD. It adds ${detail.adds}.</p>`}</div>
<div><p>Free, now: <a href="/v1/fees/estimate"><code>GET /v1/fees/estimate</code></a></p>
<pre id="free-answer" tabindex="0" role="region" aria-label="A free answer, as it is now" data-live>${shown}</pre></div>
</div>
</section>`;
}

function renderPaying({ config, catalogue }: PageParts): Html {
  const { protocols } = config;
  const byMpp = protocols.mpp
    ? html`Clients of MPP’s method <code>evm</code> pay the same routes under <code>/v1/mpp</code>. `
    : '';
  const terms = termsOf(config);
  // The stock client of the example pays plainly.
  const { exactFrom } = config.rails;
  const plain = catalogue.filter(({ price }) => price && exactFrom !== null && price.units >= exactFrom);
  const call = exampleCall(plain, terms.asset);
  const note = 'a free route, standard library only';
  return html`<section class="part" aria-labelledby="pay-title" id="pay">
<header class="head"><h2 id="pay-title">Pay for a call</h2></header>
<p>A priced route answers 402 until it is paid; any x402 v2 client pays it. ${call && TEN_LINES}</p>
${call && renderBuying(terms, call)}
${renderCode({ id: 'read-python', title: 'Python', note, code: readInPython(terms) })}
<p>${byMpp}In bitcoin a wallet for L402 or MPP pays <code>/v1/lightning</code> without further settings. Agents call \
the same routes as tools at <code>POST /mcp</code>. Sellers find a facilitator for Lightning proofs at \
<a href="/facilitator"><code>/facilitator</code></a>.</p>
</section>`;
}

const TEN_LINES = 'These ten lines do, and print the answer with the hash of its USDC transfer:';

function renderBuying(terms: ExampleTerms, call: ExampleCall): Html {
  const note = 'with the stock client and a wallet that holds USDC';
  const [typescript, curl] = [payInTypeScript(terms, call), askWithCurl(terms, call)];
  return html`${renderCode({ id: 'pay-typescript', title: 'TypeScript', note, code: typescript })}
${renderCode({ id: 'ask-curl', title: 'curl', note: 'what a 402 asks for', code: curl })}`;
}

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

/** A group that `FAMILIES` does not list comes last, under its own name. */
export function renderPrices(catalogue: readonly Entry[]): Html {
  const sold = catalogue.filter(({ access }) => access === 'paid');
  const named = new Set(FAMILIES.flatMap(({ segments }) => segments));
  const others = [...new Set(sold.map(segmentOf))].filter((segment) => !named.has(segment));
  const families = [...FAMILIES, ...others.map((segment) => ({ title: segment, segments: [segment] }))];
  return html`<table class="prices">
<caption class="unseen">Priced routes</caption>
<thead><tr><th scope="col">Route</th><th scope="col">What it answers</th>\
<th scope="col" class="number">USD a call</th></tr></thead>
${families.map((family) => groupOf(family, sold))}
</table>`;
}

function groupOf({ title, segments }: (typeof FAMILIES)[number], sold: readonly Entry[]): Html | null {
  const entries = sold.filter((entry) => segments.includes(segmentOf(entry)));
  if (entries.length === 0) return null;
  return html`<tbody>
<tr class="family"><th colspan="3" scope="rowgroup">${title}</th></tr>
${entries.map(rowOf)}</tbody>`;
}

function rowOf(entry: Entry): Html {
  const surfaces = surfacesOf(entry);
  const only = surfaces.length === 1 && (surfaces[0] === 'paid' ? 'USDC only' : 'bitcoin only');
  const link = referenceLink(entry.path, surfaces[0] ?? 'free');
  return html`<tr><th scope="row" class="route"><a href="${link}"><code>${listedPath(entry)}</code></a></th>\
<td class="what">${entry.summary}${only && html` <small class="tag">${only}</small>`}</td>\
<td class="number">${entry.price?.usd}</td></tr>
`;
}

function segmentOf({ path }: Entry): string {
  return path.split('/')[1] ?? '';
}

export function renderFreeRoutes(catalogue: readonly Entry[]): Html {
  return html`<ul class="routes">${entriesOn(catalogue, 'free').map((entry) => {
    const path = pathOn(entry, 'free');
    return html`<li><a href="${path}" title="${entry.summary}"><code>${path}</code></a></li>
`;
  })}</ul>`;
}
