import type { Answers } from '../catalogue/catalogue.ts';
import { nowSeconds } from '../lib/clock.ts';
import { percentileOf } from '../lib/percentile.ts';
import { formatGwei, formatUnits, MSAT_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import type { RailSum, SettledDay } from '../payment/history.ts';
import {
  type Html,
  html,
  renderCards,
  renderHeads,
  shortHash,
  showDay,
  showDecimal,
  showMeasure,
  showTime,
  showTimeOfDay,
  UNKNOWN,
} from './html.ts';
import type { ChartSource, PageParts } from './page-parts.ts';

// The parts of pages that the script replaces while a reader looks: charts, their sketches for readers without scripts,
// and the last self-tests.

/** Says that the page updates itself, with a button that stops it. Hidden, because without scripts it does not. */
export const LIVE_SWITCH = html`<p class="live" id="live-switch" hidden><span class="dot" aria-hidden="true"></span> \
<span>Updated every 5 seconds</span> <button type="button" class="quiet">Pause</button></p>`;

type Fees = Answers['/fees'] | null;
type Rpc = Answers['/rpc'] | null;

/** The base fee of the last half hour, in sixty points. */
const FEES = { seconds: 1800, step: 30 } as const;
export function renderFeeChart({ charts, clock }: Pick<PageParts, 'charts' | 'clock'>, fees: Fees): Html {
  return renderChart({
    id: 'fees',
    title: `Base fee, last ${FEES.seconds / 60} minutes`,
    unit: 'gwei',
    kind: 'band',
    series: feeSeries(charts, nowSeconds(clock)),
    summary: summariseFees(fees),
  });
}

const PLACES = 4;

function summariseFees(fees: Fees): Html {
  if (!fees) return html`<p class="now">${UNKNOWN}</p>`;
  const { baseFee, nextBaseFee, hours } = fees;
  const [lows, highs] = [hours.map(({ minGwei }) => minGwei), hours.map(({ maxGwei }) => maxGwei)];
  const [least, most] = [extreme(lows, Math.min), extreme(highs, Math.max)];
  const next = nextBaseFee && ` Next block ${showDecimal(nextBaseFee.gwei, PLACES)} gwei.`;
  const day =
    least !== null &&
    most !== null &&
    ` Over 24 hours ${showDecimal(least, PLACES)} to ${showDecimal(most, PLACES)} gwei.`;
  return html`<p class="now" data-value="${baseFee.gwei}"><strong>${showDecimal(baseFee.gwei, PLACES)}</strong> gwei</p>
<p>Block ${baseFee.block}.${next}${day}</p>`;
}

function extreme<T extends string | number>(values: readonly T[], pick: (...numbers: number[]) => number): T | null {
  const found = pick(...values.map(Number));
  return values.find((value) => Number(value) === found) ?? null;
}

/** Lowest, mean and highest base fee in gwei, to four decimals. */
export function feeSeries(source: ChartSource, now: number): Series {
  return {
    labels: ['Lowest', 'Mean', 'Highest'],
    rows: source.feeSteps(now - FEES.seconds, FEES.step).map(({ at, minBaseFee, avgBaseFee, maxBaseFee }) => ({
      at,
      values: [minBaseFee, avgBaseFee, maxBaseFee].map(gweiText),
    })),
  };
}

/** 0.0001 gwei in wei: charts show four decimals. */
const ROUND_WEI = 100_000n;

function gweiText(wei: bigint): string {
  return formatGwei(((wei + ROUND_WEI / 2n) / ROUND_WEI) * ROUND_WEI);
}

/** The latency of the last quarter of an hour. Each point covers about three probes. */
export const LATENCY = { seconds: 900, step: 15 } as const;

export function renderLatencyChart({ charts, clock }: Pick<PageParts, 'charts' | 'clock'>, rpc: Rpc): Html {
  const names = rpc?.endpoints.map(({ name }) => name) ?? [];
  return renderChart({
    id: 'rpc',
    title: `RPC latency, last ${LATENCY.seconds / 60} minutes`,
    unit: 'ms',
    kind: 'lines',
    series: latencySeries(charts, names, nowSeconds(clock)),
    summary: summariseRpc(rpc),
  });
}

function summariseRpc(rpc: Rpc): Html {
  const endpoints = rpc?.endpoints ?? [];
  const answering = endpoints.filter(({ ok }) => ok === true);
  const latencies = answering.flatMap(({ latencyMs }) => latencyMs ?? []);
  const fastest = extreme(latencies, Math.min);
  if (fastest === null) return html`<p class="now">${UNKNOWN}</p>`;
  const all =
    endpoints.length === 1 ? 'The one endpoint answers' : `${answering.length} of ${endpoints.length} endpoints answer`;
  const lags = answering.flatMap(({ headLagBlocks }) => headLagBlocks ?? []);
  return html`<p class="now" data-value="${fastest}"><strong>${fastest}</strong> ms</p>
<p>${all}; this is the fastest. ${lagText(extreme(lags, Math.max))}</p>`;
}

function lagText(blocks: number | null): string | null {
  if (blocks === null) return null;
  return blocks === 0
    ? 'None is behind the head.'
    : `At most ${blocks} ${blocks === 1 ? 'block' : 'blocks'} behind the head.`;
}

/** The median latency of each endpoint in milliseconds; null where it did not answer. */
export function latencySeries(source: ChartSource, endpoints: readonly string[], now: number): Series {
  const { seconds, step } = LATENCY;
  const byStep = new Map<number, number[][]>();
  endpoints.forEach((name, column) => {
    for (const { atMs, latencyMs } of source.probes(name, (now - seconds) * 1000)) {
      const at = Math.floor(atMs / 1000 / step) * step;
      const row = byStep.get(at) ?? endpoints.map((): number[] => []);
      byStep.set(at, row);
      if (latencyMs !== null) row[column]?.push(latencyMs);
    }
  });
  const rows = [...byStep].sort(([a], [b]) => a - b).map(([at, row]) => ({ at, values: row.map(medianText) }));
  return { labels: endpoints, rows };
}

function medianText(values: readonly number[]): string | null {
  const median = percentileOf(values, 50);
  return median === null ? null : String(Math.round(median * 10) / 10);
}

/** Calls and revenue a day, a line for each way to pay. `days`: the oldest first; the last one is today. */
export function renderDays(days: readonly SettledDay[]): Html {
  const sold = new Set(days.flatMap(({ sums }) => (sums ?? []).flatMap(({ rail, count }) => (count > 0 ? rail : []))));
  const inUsdc = ['usdc', ...[...sold].filter((rail) => rail !== 'usdc' && rail !== 'lightning').sort()];
  const daily = (names: Pick<Chart, 'id' | 'title' | 'unit'>, rails: readonly string[], decimals: number | null) => {
    const figureOf = ({ count, amount }: RailSum) => (decimals === null ? BigInt(count) : amount);
    const add = (sum: bigint, figure: bigint) => sum + figure;
    const show = (figure: bigint) => formatUnits(figure, decimals ?? 0);
    const figures = days.map(({ sums }) =>
      rails.map((rail) => sums?.flatMap((sum) => (sum.rail === rail ? figureOf(sum) : [])).reduce(add, 0n)),
    );
    const rows = days.map(({ dayMs }, at) => ({
      at: dayMs / 1000,
      values: (figures[at] ?? []).map((figure) => (figure === undefined ? null : show(figure))),
    }));
    const total = show(
      figures
        .flat()
        .flatMap((figure) => figure ?? [])
        .reduce(add, 0n),
    );
    const unread = days.some(({ sums }) => sums === null) && ' Days that are not read yet are left out.';
    return renderChart({
      ...names,
      kind: 'lines',
      isDaily: true,
      series: { labels: rails.map(labelOf), rows },
      summary: html`<p class="now" data-value="${total}"><strong>${showDecimal(total, PLACES)}</strong> \
${names.unit}</p>
<p>In ${days.length} days, today so far included.${unread}</p>`,
    });
  };
  return html`${daily({ id: 'calls', title: 'Calls a day', unit: 'calls' }, [...inUsdc, 'lightning'], null)}
${daily({ id: 'revenue', title: 'Revenue a day in USDC', unit: 'USDC' }, inUsdc, USDC_DECIMALS)}
${daily({ id: 'sats', title: 'Revenue a day in bitcoin', unit: 'sats' }, ['lightning'], MSAT_DECIMALS)}`;
}

const labelOf = (rail: string): string =>
  rail === 'usdc' ? 'USDC' : `${rail.charAt(0).toUpperCase()}${rail.slice(1)}`;

/** One row per moment, one column per line. Times in Unix seconds, oldest first. */
interface Series {
  readonly labels: readonly string[];
  /** Decimal text; null where there is no value. */
  readonly rows: readonly { readonly at: number; readonly values: readonly (string | null)[] }[];
}

/** `band`: of three columns, an area between the outer two and a line for the middle one. */
type Kind = 'band' | 'lines';

interface Chart {
  /** Unique on the page: the prefix of its elements' ids. */
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly kind: Kind;
  /** Whether each moment is a UTC day. */
  readonly isDaily?: boolean;
  readonly series: Series;
  /** For readers who do not see the drawing. */
  readonly summary: Html;
}

/** A figure with its data as a table: scripts draw it, screen readers read it, others see a sketch. */
function renderChart({ id, title, unit, kind, isDaily = false, series, summary }: Chart): Html {
  const titleId = `${id}-title`;
  const step = isDaily && html` data-step="day"`;
  return html`<figure class="chart" data-chart="${kind}" data-unit="${unit}"${step} id="${id}" \
aria-labelledby="${titleId}">
<figcaption>
<h3 id="${titleId}">${title}</h3>
<div class="reading" id="${id}-summary" data-live>${summary}</div>
</figcaption>
<div class="plot" aria-hidden="true">${sketch(series, kind) ?? html`<p class="empty">Nothing yet.</p>`}</div>
<details>
<summary>The same as a table</summary>
<div class="scroll" role="region" aria-labelledby="${titleId}" tabindex="0">
<table class="figures">
${renderHeads([isDaily ? 'Day (UTC)' : 'Time (UTC)', ...series.labels.map((label) => `${label}, ${unit}`)])}
<tbody id="${id}-rows" data-live>${series.rows.map((row) => rowOf(row, isDaily))}</tbody>
</table>
</div>
</details>
</figure>`;
}

function rowOf({ at, values }: Series['rows'][number], isDaily: boolean): Html {
  const cells = values.map((value) => html`<td>${value ?? '–'}</td>`);
  return html`<tr><th scope="row">${isDaily ? showDay(at) : showTimeOfDay(at)}</th>${cells}</tr>
`;
}

const WIDTH = 600;
const HEIGHT = 160;
/** Space above and below, so that a flat line does not lie on the border. */
const MARGIN = 12;

/** A small picture for readers without scripts. A span without a value is a gap. */
export function sketch({ rows, labels }: Series, kind: Kind): Html | null {
  const values = rows.flatMap((row) => row.values.flatMap((value) => (value === null ? [] : [Number(value)])));
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last || values.length === 0) return null;
  const low = Math.min(...values);
  const spread = Math.max(...values) - low;
  const x = (at: number) => (last.at === first.at ? WIDTH / 2 : ((at - first.at) / (last.at - first.at)) * WIDTH);
  const y = (value: number) => HEIGHT - MARGIN - (spread === 0 ? 0.5 : (value - low) / spread) * (HEIGHT - 2 * MARGIN);
  const line = (column: number) => {
    let path = '';
    let pen = 'M';
    for (const { at, values } of rows) {
      const value = values[column] ?? null;
      if (value !== null) path += `${pen}${round(x(at))} ${round(y(Number(value)))}`;
      pen = value === null ? 'M' : 'L';
    }
    const name = kind === 'band' && column !== 1 ? 'edge' : `line-${kind === 'band' ? 1 : (column % 5) + 1}`;
    return html`<path class="${name}" d="${path}"/>`;
  };
  const lines = labels.map((_, column) => line(column));
  return html`<svg class="sketch" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">${lines}</svg>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

type SelfTest = Answers['/selftest'] | null;
type SelfTestRun = Answers['/selftest']['recent'][number];

/** The last runs as marks, oldest first, each with a text for readers who do not see its colour. */
export function renderStrip(selfTest: SelfTest): Html {
  const runs = [...(selfTest?.recent ?? [])].reverse();
  const marks = runs.map(({ at, ok }) => {
    const [colour, result] = ok ? ['good', 'passed'] : ['bad', 'failed'];
    return html`<li class="${colour}"><span class="unseen">${showTimeOfDay(at)} ${result}</span></li>`;
  });
  return html`<ol class="strip" aria-label="Self-tests, oldest first">${marks}</ol>`;
}

export function renderLastRun(selfTest: SelfTest): Html {
  const run = selfTest?.recent[0];
  if (!selfTest || !run) return html`<p>No self-test has run yet.</p>`;
  const { runs, ok } = selfTest.last24h;
  const verdict = run.ok ? html`<strong class="good">Passed</strong>` : html`<strong class="bad">Failed</strong>`;
  const bought =
    run.ok &&
    run.latencyMs !== null &&
    html`: a call bought, settled and answered in ${showMeasure(run.latencyMs, 'ms')}`;
  return html`<p>${verdict} at ${showTime(run.at)} UTC${bought}. \
${run.notCharged && 'The call that must fail cost nothing. '}${ok} of ${runs} runs passed in the last 24 hours.</p>`;
}

/** The last runs as a table, newest first. A settlement links to its transaction. */
export function renderRuns(selfTest: SelfTest, transactionUrl: (hash: string) => string): Html | null {
  const runs = selfTest?.recent ?? [];
  if (runs.length === 0) return null;
  return renderCards(
    'Self-tests, newest first',
    ['Began (UTC)', 'Result', 'Paid call', 'Failing call', 'Settlement'],
    runs.map((run) => runRow(run, transactionUrl)),
  );
}

function runRow(
  { at, ok, latencyMs, notCharged, transaction, reason }: SelfTestRun,
  url: (hash: string) => string,
): Html {
  return html`<tr><th scope="row">${showTime(at)}</th>\
<td class="${ok ? 'good' : 'bad loose'}">${ok ? 'passed' : `failed: ${reason ?? 'no reason given'}`}</td>\
<td data-label="Paid call">${showMeasure(latencyMs, 'ms')}</td>\
<td data-label="Failing call">${chargeOf(notCharged)}</td>\
<td data-label="Settlement">${
    transaction && html`<a href="${url(transaction)}" title="${transaction}"><code>${shortHash(transaction)}</code></a>`
  }</td></tr>
`;
}

function chargeOf(notCharged: boolean | null): string {
  if (notCharged === null) return 'not seen';
  return notCharged ? 'not charged' : 'charged';
}
