import { nowSeconds } from '../lib/clock.ts';
import type { Outcome } from '../lib/outcomes.ts';
import { formatUnits } from '../lib/units.ts';
import type { RailSum } from '../payment/settled-today.ts';
import { type Html, html, showMeasure, showNumber, showTime, UNKNOWN } from './html.ts';
import { LIVE_SWITCH, renderLastRun, renderLatencyChart, renderRuns, renderStrip } from './live.ts';
import type { Answers, PageParts } from './page-parts.ts';
import { renderPage, siteOf } from './shell.ts';

type Health = Answers['/health'] | null;

/** The status page waits this long for a part that does not answer. */
const TIMEOUT_MS = 3000;
/** For this long after a start, what was not read yet is no fault. The first readings take seconds. */
const STARTING_MS = 60_000;

/** Renders `/status`: whether the service works, the collector's lag, how payments come in, today's payments, and the self-tests. */
export async function renderStatus(parts: PageParts, settledToday: () => Promise<readonly RailSum[]>): Promise<string> {
  const [health, rpc, selfTest, state, settled, facilitator] = await Promise.all([
    parts.read('/health'),
    parts.read('/rpc'),
    parts.read('/selftest'),
    readinessOf(parts),
    settledToday().catch(() => null),
    parts.facilitator.descriptor().catch(() => null),
  ]);
  const isStarting = parts.clock.nowMs() - parts.startedAtMs < STARTING_MS;
  const { explorerUrl } = parts.config.network;
  const transactionUrl = (hash: string) => (explorerUrl ? `${explorerUrl}/tx/${hash}` : `/v1/payments/${hash}`);
  return renderPage({
    site: siteOf(parts.config),
    title: 'Status',
    path: '/status',
    description: 'Health, lag, payment rails, self-tests, and what was settled today.',
    scripts: ['uplot.js', 'charts.js', 'live.js'],
    styles: ['uplot.css', 'figures.css', 'status.css'],
    body: html`<header class="head"><h1>Status</h1>${LIVE_SWITCH}</header>
<div id="verdict" data-live>${renderVerdict(state, health, isStarting)}<p class="asof">As of ${showTime(nowSeconds(parts.clock))} UTC.</p></div>
<div class="columns">
<section class="part" aria-labelledby="settled-title"><header class="head"><h2 id="settled-title">Settled today</h2></header>
<div id="settled" data-live>${renderSettled(settled, facilitator)}</div></section>
<section class="part" aria-labelledby="lag-title"><header class="head"><h2 id="lag-title">Collected data</h2></header>
<div id="lag" data-live>${renderLag(health)}</div></section>
</div>
<section class="part" aria-labelledby="rails-title"><header class="head"><h2 id="rails-title">Payment rails</h2></header>
<div id="rails" data-live>${renderRails(state?.checks ?? null, parts.readiness, isStarting)}</div></section>
<section class="part" aria-labelledby="sources-title"><header class="head"><h2 id="sources-title">Sources of data</h2></header>
<p>One row for each source, as this process has seen it since it started. Answers from a cache do not count.</p>
<div id="sources" data-live>${renderSources(parts, rpc)}</div></section>
<section class="part" aria-labelledby="rpc-title-section"><header class="head"><h2 id="rpc-title-section">RPC endpoints</h2></header>
${renderLatencyChart(parts, rpc)}</section>
<section class="part" aria-labelledby="selftest-title"><header class="head"><h2 id="selftest-title">Self-tests</h2></header>
<p>${selfTest?.note}</p>
<div id="selftest" data-live>${renderStrip(selfTest)}${renderLastRun(selfTest)}</div>
<div id="runs" data-live>${renderRuns(selfTest, transactionUrl)}</div></section>`,
  });
}

type State = Awaited<ReturnType<PageParts['readiness']>>;

/** The state of each part; null when that took too long. */
async function readinessOf({ readiness, clock }: PageParts): Promise<State | null> {
  const over = new AbortController();
  const late = clock.sleep(TIMEOUT_MS, over.signal).then(
    () => null,
    () => null,
  );
  return Promise.race([readiness(), late]).finally(() => over.abort());
}

const HEALTH_TEXTS = {
  ok: null,
  stalled: 'The chain’s head has not moved, or no provider answered.',
  lagging: 'The collector is behind the chain; collected answers are older than they should be.',
} as const;

/** What a failing check means that prevents no sale in USDC. */
const FAULT_TEXTS: Readonly<Record<string, string>> = {
  clock: 'The clock of this machine is off, so payments that are good may be refused.',
  lightning: 'Nothing can be sold for bitcoin now.',
};

function faultText(name: string): string {
  return (Object.hasOwn(FAULT_TEXTS, name) ? FAULT_TEXTS[name] : undefined) ?? `${partName(name)}: a fault.`;
}

function countWays(count: number): string {
  return count === 1 ? 'One way to pay does' : `${count} ways to pay do`;
}

/** States the verdict in words; the colour repeats it. */
function renderVerdict(state: State | null, health: Health, isStarting: boolean): Html {
  const isUnread = isStarting && health?.freshness.head == null;
  const needed = state?.failing ?? [];
  const others = Object.entries(state?.checks ?? {}).flatMap(([name, { ok }]) =>
    ok || needed.includes(name) ? [] : [name],
  );
  const ways = others.filter((name) => state?.ways.includes(name));
  const faults = [
    state === null && 'Whether paid calls can be served now is not known: a part gave no answer in time.',
    needed.length > 0 && `Priced calls cannot be served now (${needed.map(partName).join(', ')}); nothing is charged.`,
    ways.length > 0 && `${countWays(ways.length)} not work now (${ways.map(partName).join(', ')}).`,
    ...others.filter((name) => !ways.includes(name)).map(faultText),
    !isUnread && (health ? HEALTH_TEXTS[health.status] : 'The state of the collector is not known.'),
  ].filter((fault) => typeof fault === 'string');
  if (faults.length === 0 && isUnread)
    return html`<p class="verdict starting">Starting: the collector has not read the chain yet.</p>`;
  if (faults.length === 0) return html`<p class="verdict good">Everything works.</p>`;
  return html`<p class="verdict bad">${faults.join(' ')}</p>`;
}

function renderLag(health: Health): Html {
  const { freshness, readings, thresholds } = health ?? {};
  return html`<dl class="pairs">
<div><dt>Head of the chain</dt><dd>${freshness?.head ?? UNKNOWN}</dd></div>
<div><dt>Collected up to</dt><dd>${freshness?.collected ?? UNKNOWN}</dd></div>
<div><dt>Behind</dt><dd>${behindText(readings)} <small>bad above ${showMeasure(thresholds?.lagBlocks, 'blocks')} or ${showMeasure(thresholds?.lagSeconds, 's')}</small></dd></div>
<div><dt>Head moved</dt><dd>${showMeasure(readings?.headMovedSecondsAgo, 's ago')} <small>bad above ${showMeasure(thresholds?.stalledSeconds, 's')}</small></dd></div>
<div><dt>Past blocks collected</dt><dd>${showMeasure(readings && readings.windowCollected * 100, '%')}</dd></div>
</dl>`;
}

function behindText(readings: NonNullable<Health>['readings'] | undefined): Html {
  const { lagBlocks = null, lagSeconds = null } = readings ?? {};
  if (lagBlocks === null) return UNKNOWN;
  return html`${showMeasure(lagBlocks, 'blocks')}, ${showMeasure(lagSeconds, 's')}`;
}

/** The readiness checks by name. */
type Checks = Awaited<ReturnType<PageParts['readiness']>>['checks'];

/** The names of the checks on the page. A check that is not listed here keeps its own name. */
const PART_NAMES: Readonly<Record<string, string>> = {
  ledger: 'Ledger of payments',
  usdc: 'USDC contract',
  rpc: 'RPC providers',
  settlement: 'Settlement in USDC',
  facilitator: 'Remote facilitator',
  gateway: 'Circle Gateway',
  channels: 'Payment channels',
  lightning: 'Lightning',
  clock: 'Clock',
  instances: 'Instances',
  collector: 'Collector',
  primary: 'Settling process',
};

/** The name of a check for people. */
function partName(name: string): string {
  return (Object.hasOwn(PART_NAMES, name) ? PART_NAMES[name] : undefined) ?? name;
}

/** Renders every part that payments need: whether it works, when it last did and did not, and its own description. */
function renderRails(checks: Checks | null, { outcomeOf }: PageParts['readiness'], isStarting: boolean): Html {
  if (checks === null) return html`<p>${UNKNOWN}</p>`;
  return html`<div class="scroll" role="region" aria-label="Parts that payments need" tabindex="0"><table class="cards">
<caption class="unseen">Parts that payments need</caption>
<thead><tr><th scope="col">Part</th><th scope="col">State</th><th scope="col">Last success (UTC)</th><th scope="col">Last failure (UTC)</th><th scope="col">Detail</th></tr></thead>
<tbody>${Object.entries(checks)
    .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
    .map(([name, { ok, detail }]) => {
      const outcome = outcomeOf(name);
      const state = ok ? 'good' : isStarting && outcome?.okAtMs == null ? 'starting' : 'bad';
      return html`<tr><th scope="row" class="part-name">${partName(name)}</th><td class="${state}">${STATES[state]}</td>${renderTimes(outcome)}<td class="loose" data-label="Detail">${detail}</td></tr>
`;
    })}</tbody>
</table></div>`;
}

/** The page has a section of its own for what is collected. */
const SHOWN_ELSEWHERE = new Set(['collector']);

const STATES = { good: 'no fault', starting: 'starting', bad: 'fault' } as const;

/** How old a probe of an RPC endpoint may be to count here, in milliseconds. */
const PROBES_MS = 900_000;

/** What the sources' own names stand for. A source that is not listed here keeps its name. */
const SOURCE_NAMES: Readonly<Record<string, string>> = {
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
function renderSources(
  { charts, clock, upstreams }: Pick<PageParts, 'charts' | 'clock' | 'upstreams'>,
  rpc: Answers['/rpc'] | null,
): Html {
  const since = clock.nowMs() - PROBES_MS;
  const providers = (rpc?.endpoints ?? []).map(({ name }): [string, Outcome] => [
    `Chain: ${name}`,
    outcomeOf(name, charts.probes(name, since)),
  ]);
  const sources = upstreams().map((outcome): [string, Outcome] => [
    SOURCE_NAMES[outcome.name] ?? outcome.name,
    outcome,
  ]);
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
function renderTimes(outcome: Pick<Outcome, 'okAtMs' | 'failedAtMs'> | null): Html {
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
function renderSettled(sums: readonly RailSum[] | null, facilitator: Facilitator | null): Html {
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
