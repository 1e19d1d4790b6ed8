import type { Answers } from '../catalogue/catalogue.ts';
import { DAY_MS, nowSeconds } from '../lib/clock.ts';
import type { Outcome } from '../lib/outcomes.ts';
import { formatUnits, MSAT_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import type { RailSum, SettledDay } from '../payment/history.ts';
import {
  type Html,
  html,
  renderCards,
  renderHeads,
  renderPair,
  renderPart,
  showMeasure,
  showNumber,
  showTime,
  UNKNOWN,
} from './html.ts';
import { LIVE_SWITCH, renderDays, renderLastRun, renderLatencyChart, renderRuns, renderStrip } from './live.ts';
import type { PageParts } from './page-parts.ts';
import { renderPage, siteOf } from './shell.ts';

// `/status`, in the order of the page. Its chart and its self-tests are in live.ts.

type Health = Answers['/health'] | null;
type State = Awaited<ReturnType<PageParts['readiness']>>;
type Facilitator = Awaited<ReturnType<PageParts['facilitator']['descriptor']>>;

/** So long after a start, what was not read yet is no fault: the first readings take seconds. */
const STARTING_MS = 60_000;

type Refused = Awaited<ReturnType<NonNullable<PageParts['refused']>['read']>>;
type SentenceOf = NonNullable<PageParts['refused']>['sentenceOf'];

/** A part that gives no answer is shown as not known. Of earlier days nothing is shown unless `refused` is there. */
export async function renderStatus(
  parts: PageParts,
  settledToday: () => Promise<readonly RailSum[]>,
  settledDays: () => Promise<readonly SettledDay[]>,
): Promise<string> {
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
  const verdict = renderVerdict(state, health, isStarting);
  const rails = renderRails(state?.checks ?? null, parts.readiness, isStarting);
  return renderPage({
    site: siteOf(parts.config),
    title: 'Status',
    path: '/status',
    description: 'Health, lag, payment rails, self-tests, and what was settled today.',
    scripts: ['uplot.js', 'charts.js', 'live.js'],
    styles: ['uplot.css', 'figures.css', 'status.css'],
    body: html`<header class="head"><h1>Status</h1>${LIVE_SWITCH}</header>
<div id="verdict" data-live>${verdict}<p class="asof">As of ${showTime(nowSeconds(parts.clock))} UTC.</p></div>
<div class="columns">
${renderPart('settled-title', 'Settled today', live('settled', renderSettled(settled, facilitator)))}
${renderPart('lag-title', 'Collected data', live('lag', renderLag(health)))}
</div>
${await renderHistory(parts, settled, settledDays)}
${renderPart('rails-title', 'Payment rails', live('rails', rails))}
${renderPart(
  'sources-title',
  'Sources of data',
  html`<p>One row for each source, as this process has seen it since it started. Answers from a cache do not count.</p>
${live('sources', renderSources(parts, rpc))}`,
)}
${renderPart('rpc-title-section', 'RPC endpoints', renderLatencyChart(parts, rpc))}
${renderPart(
  'selftest-title',
  'Self-tests',
  html`<p>${selfTest?.note}</p>
${live('selftest', html`${renderStrip(selfTest)}${renderLastRun(selfTest)}`)}
${live('runs', renderRuns(selfTest, transactionUrl))}`,
)}`,
  });
}

function live(id: string, content: Html | null): Html {
  return html`<div id="${id}" data-live>${content}</div>`;
}

const TIMEOUT_MS = 3000;

/** Null when that took longer than `TIMEOUT_MS`. */
async function readinessOf({ readiness, clock }: PageParts): Promise<State | null> {
  const over = new AbortController();
  const late = clock.sleep(TIMEOUT_MS, over.signal).then(
    () => null,
    () => null,
  );
  return Promise.race([readiness(), late]).finally(() => over.abort());
}

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
  return wordFor(name, FAULT_TEXTS) ?? `${partName(name)}: a fault.`;
}

function countWays(count: number): string {
  return count === 1 ? 'One way to pay does' : `${count} ways to pay do`;
}

/** A check that is not listed here keeps its own name. */
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

function partName(name: string): string {
  return wordFor(name, PART_NAMES) ?? name;
}

function wordFor(name: string, words: Readonly<Record<string, string>>): string | undefined {
  return Object.hasOwn(words, name) ? words[name] : undefined;
}

/** `sums`: today's payments by rail; null when the ledger did not answer. */
function renderSettled(sums: readonly RailSum[] | null, facilitator: Facilitator | null): Html {
  return html`<table>
<caption>Since midnight UTC; the self-test’s purchases count</caption>
${renderHeads(['Rail', 'Payments', 'Sum'])}
<tbody>${sums?.map(({ rail, count, amount }) => {
    const [unit, decimals] = rail === 'lightning' ? ['sats', MSAT_DECIMALS] : ['USDC', USDC_DECIMALS];
    const name = wordFor(rail, WAY_NAMES) ?? rail;
    return html`<tr id="settled-${rail}"><th scope="row">${name}</th><td class="number">${showNumber(count)}</td>\
<td class="number">${formatUnits(amount, decimals)} ${unit}</td></tr>
`;
  })}
<tr><th scope="row">Facilitator, for sellers</th>\
<td class="number">${facilitator ? showNumber(facilitator.limits.settledToday) : UNKNOWN}</td>\
<td class="number">–</td></tr></tbody>
</table>
${sums === null && html`<p>The ledger gave no answer: ${UNKNOWN}.</p>`}`;
}

/** A way to pay that is not listed here keeps its own name. */
const WAY_NAMES: Readonly<Record<string, string>> = {
  usdc: 'USDC',
  gateway: 'USDC through the Gateway',
  channels: 'USDC over payment channels',
  lightning: 'Lightning',
};

async function renderHistory(
  { refused, clock }: Pick<PageParts, 'refused' | 'clock'>,
  today: readonly RailSum[] | null,
  settledDays: () => Promise<readonly SettledDay[]>,
): Promise<Html | null> {
  if (refused === null) return null;
  const [before, calls] = await Promise.all([settledDays(), refused.read().catch(() => null)]);
  const days = [...before, { dayMs: Math.floor(clock.nowMs() / DAY_MS) * DAY_MS, sums: today }];
  const charts = html`<div class="charts thirds">${renderDays(days)}</div>`;
  return html`${renderPart('days-title', 'The last 30 days', charts)}
${renderPart(
  'refused-title',
  'Refused calls',
  html`<p>Calls whose payment was presented and that got no answer, by the code that they got. They cost the buyer \
nothing, unless the answer said otherwise. A third party’s own words count as “other”.</p>
${live('refused', renderRefused(calls, refused.sentenceOf))}`,
)}`;
}

/** `refused`: null when the ledger did not answer. */
function renderRefused(refused: Refused | null, sentenceOf: SentenceOf): Html {
  if (refused === null) return html`<p>${UNKNOWN}</p>`;
  if (refused.length === 0) return html`<p>None in the last 30 days.</p>`;
  return renderCards(
    'Refused calls by code',
    ['Code', 'Last 24 hours', 'Last 30 days', 'What the buyer is told'],
    refused.map(
      ({ code, count, recentCount }) =>
        html`<tr><th scope="row" class="part-name"><code>${code}</code></th>\
<td class="number" data-label="Last 24 hours">${showNumber(recentCount)}</td>\
<td class="number" data-label="Last 30 days">${showNumber(count)}</td>\
<td class="loose" data-label="What the buyer is told">${sentenceOf(code)}</td></tr>
`,
    ),
  );
}

function renderLag(health: Health): Html {
  const { freshness, readings, thresholds } = health ?? {};
  const blocks = showMeasure(thresholds?.lagBlocks, 'blocks');
  const seconds = showMeasure(thresholds?.lagSeconds, 's');
  const stalled = showMeasure(thresholds?.stalledSeconds, 's');
  const moved = showMeasure(readings?.headMovedSecondsAgo, 's ago');
  return html`<dl class="pairs">
${renderPair('Head of the chain', freshness?.head ?? UNKNOWN)}
${renderPair('Collected up to', freshness?.collected ?? UNKNOWN)}
${renderPair('Behind', html`${behindText(readings)} <small>bad above ${blocks} or ${seconds}</small>`)}
${renderPair('Head moved', html`${moved} <small>bad above ${stalled}</small>`)}
${renderPair('Past blocks collected', showMeasure(readings && readings.windowCollected * 100, '%'))}
</dl>`;
}

function behindText(readings: NonNullable<Health>['readings'] | undefined): Html {
  const { lagBlocks = null, lagSeconds = null } = readings ?? {};
  if (lagBlocks === null) return UNKNOWN;
  return html`${showMeasure(lagBlocks, 'blocks')}, ${showMeasure(lagSeconds, 's')}`;
}

function renderRails(checks: State['checks'] | null, { outcomeOf }: PageParts['readiness'], isStarting: boolean): Html {
  if (checks === null) return html`<p>${UNKNOWN}</p>`;
  return renderCards(
    'Parts that payments need',
    ['Part', 'State', 'Last success (UTC)', 'Last failure (UTC)', 'Detail'],
    Object.entries(checks)
      .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
      .map(([name, { ok, detail }]) => {
        const outcome = outcomeOf(name);
        const state = ok ? 'good' : isStarting && outcome?.okAtMs == null ? 'starting' : 'bad';
        return html`<tr><th scope="row" class="part-name">${partName(name)}</th>\
<td class="${state}">${STATES[state]}</td>${renderTimes(outcome)}\
<td class="loose" data-label="Detail">${detail}</td></tr>
`;
      }),
  );
}

/** What is collected has a section of its own. */
const SHOWN_ELSEWHERE = new Set(['collector']);

const STATES = { good: 'no fault', starting: 'starting', bad: 'fault' } as const;

function renderTimes(outcome: Pick<Outcome, 'okAtMs' | 'failedAtMs'> | null): Html {
  return html`<td data-label="Last success (UTC)">${timeOf(outcome?.okAtMs)}</td>\
<td data-label="Last failure (UTC)">${timeOf(outcome?.failedAtMs)}</td>`;
}

function timeOf(atMs: number | null | undefined): Html {
  return atMs === null || atMs === undefined
    ? html`<span class="unknown">none seen</span>`
    : showTime(Math.floor(atMs / 1000));
}

/** The greatest age of a probe of an RPC endpoint that counts here. */
const PROBES_MS = 900_000;

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
  return renderCards(
    'Sources of data',
    ['Source', 'State', 'Last success (UTC)', 'Last failure (UTC)', 'Reason'],
    rows.map(
      ([name, outcome]) =>
        html`<tr><th scope="row" class="part-name">${name}</th>${renderState(outcome)}${renderTimes(outcome)}\
<td class="loose" data-label="Reason">${outcome.reason}</td></tr>
`,
    ),
  );
}

function outcomeOf(
  name: string,
  probes: readonly { readonly atMs: number; readonly latencyMs: number | null }[],
): Outcome {
  const ok = probes.findLast(({ latencyMs }) => latencyMs !== null);
  const failed = probes.findLast(({ latencyMs }) => latencyMs === null);
  return {
    name,
    okAtMs: ok?.atMs ?? null,
    failedAtMs: failed?.atMs ?? null,
    reason: failed ? 'no answer to a probe' : null,
  };
}

/** A source that is not listed here keeps its own name. */
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

/** The newest outcome decides. A source that no call has needed yet is neither good nor bad. */
function renderState({ okAtMs, failedAtMs }: Outcome): Html {
  if (okAtMs === null && failedAtMs === null) return html`<td class="unknown">not asked yet</td>`;
  return (okAtMs ?? 0) >= (failedAtMs ?? 0) ? html`<td class="good">answers</td>` : html`<td class="bad">fails</td>`;
}
