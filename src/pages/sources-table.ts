import type { Outcome } from '../lib/outcomes.ts';
import type { Answers } from './answers.ts';
import { showTime } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';

/** How old a probe of an RPC endpoint may be to count here, in milliseconds. */
const PROBES_MS = 900_000;

/** What the sources' own names stand for. A source that is not listed here keeps its name. */
const NAMES: Readonly<Record<string, string>> = {
  npm: 'npm: packages',
  'npm-downloads': 'npm: downloads',
  'deps.dev': 'deps.dev: whether packages exist, and their dependents',
  pypi: 'PyPI: packages',
  osv: 'OSV: advisories',
  IANA: 'IANA: list of RDAP servers',
  RDAP: 'RDAP: domain registrations',
  ECB: 'ECB: reference rates',
  Frankfurter: 'Frankfurter: reference rates, when the ECB fails',
  'Cloudflare 1.1.1.1': 'Cloudflare 1.1.1.1: DNS',
  'Google Public DNS': 'Google Public DNS, when Cloudflare fails',
  Wikipedia: 'Wikipedia: articles',
  Coinbase: 'Coinbase: price of bitcoin',
  Kraken: 'Kraken: price of bitcoin',
  Bitstamp: 'Bitstamp: price of bitcoin',
  catalogue: 'Third-party catalogue of routes',
  lnd: 'Lightning node (lnd)',
  cln: 'Lightning node (Core Lightning)',
  phoenixd: 'Lightning node (phoenixd)',
};

/** Renders a row for each source of data: the providers of the chain, and the public sources. Times are of this process, since its start. */
export function renderSources(
  { charts, clock, upstreams }: Pick<PageParts, 'charts' | 'clock' | 'upstreams'>,
  rpc: Answers['/rpc'] | null,
): Html {
  const since = clock.nowMs() - PROBES_MS;
  const providers = (rpc?.endpoints ?? []).map(({ name }): [string, Outcome] => [
    `Chain: ${name}`,
    outcomeOf(name, charts.probes(name, since)),
  ]);
  const sources = upstreams().map((outcome): [string, Outcome] => [NAMES[outcome.name] ?? outcome.name, outcome]);
  const rows = [...providers, ...sources];
  if (rows.length === 0) return html`<p>No source is configured.</p>`;
  return html`<div class="scroll" role="region" aria-label="Sources of data" tabindex="0"><table class="cards">
<caption class="unseen">Sources of data</caption>
<thead><tr><th scope="col">Source</th><th scope="col">State</th><th scope="col">Last success (UTC)</th><th scope="col">Last failure (UTC)</th><th scope="col">Reason</th></tr></thead>
<tbody>${rows.map(
    ([name, outcome]) =>
      html`<tr><th scope="row" class="part-name">${name}</th>${renderState(outcome)}${renderTimes(outcome)}<td class="loose" data-label="Reason">${outcome.reason}</td></tr>
`,
  )}</tbody>
</table></div>`;
}

/** Two cells: when something worked last, and when it failed last. */
export function renderTimes(outcome: Pick<Outcome, 'okAtMs' | 'failedAtMs'> | null): Html {
  return html`<td data-label="Last success (UTC)">${timeOf(outcome?.okAtMs)}</td><td data-label="Last failure (UTC)">${timeOf(outcome?.failedAtMs)}</td>`;
}

function timeOf(atMs: number | null | undefined): Html {
  return atMs === null || atMs === undefined
    ? html`<span class="unknown">none seen</span>`
    : showTime(Math.floor(atMs / 1000));
}

/** The newest outcome decides. A source that no call has needed yet is neither good nor bad. */
function renderState({ okAtMs, failedAtMs }: Outcome): Html {
  if (okAtMs === null && failedAtMs === null) return html`<td class="unknown">not asked yet</td>`;
  return (okAtMs ?? 0) >= (failedAtMs ?? 0) ? html`<td class="good">answers</td>` : html`<td class="bad">fails</td>`;
}

function outcomeOf(
  name: string,
  probes: readonly { readonly atMs: number; readonly latencyMs: number | null }[],
): Outcome {
  const [ok, failed] = [
    probes.findLast(({ latencyMs }) => latencyMs !== null),
    probes.findLast(({ latencyMs }) => latencyMs === null),
  ];
  return {
    name,
    okAtMs: ok?.atMs ?? null,
    failedAtMs: failed?.atMs ?? null,
    reason: failed ? 'no answer to a probe' : null,
  };
}
