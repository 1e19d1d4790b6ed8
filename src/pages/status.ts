import { nowSeconds } from '../lib/clock.ts';
import type { RailSum } from '../payment/settled-today.ts';
import type { Answers } from './answers.ts';
import { renderLatencyChart } from './charts/live-charts.ts';
import { LIVE_SWITCH } from './charts/live-switch.ts';
import { showMeasure, showTime, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';
import { partName, renderRails } from './rails-table.ts';
import { renderLastRun, renderRuns, renderStrip } from './self-test.ts';
import { renderSettled } from './settled-table.ts';
import { renderPage } from './shell.ts';
import { siteOf } from './site.ts';
import { renderSources } from './sources-table.ts';

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
