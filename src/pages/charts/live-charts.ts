import { nowSeconds } from '../../lib/clock.ts';
import type { Answers } from '../answers.ts';
import { showDecimal, UNKNOWN } from '../format.ts';
import { type Html, html } from '../html.ts';
import type { PageParts } from '../pages-deps.ts';
import { renderChart } from './chart.ts';
import { FEES, feeSeries, LATENCY, latencySeries } from './series.ts';

/** Decimals of a gwei that the chart shows. */
const PLACES = 4;

type Fees = Answers['/fees'] | null;
type Rpc = Answers['/rpc'] | null;

/** The chart of the base fee over the last minutes. */
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

/** The chart of every probed endpoint's latency over the last minutes. */
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

function summariseFees(fees: Fees): Html {
  if (!fees) return html`<p class="now">${UNKNOWN}</p>`;
  const { baseFee, nextBaseFee, hours } = fees;
  const least = extreme(
    hours.map(({ minGwei }) => minGwei),
    Math.min,
  );
  const most = extreme(
    hours.map(({ maxGwei }) => maxGwei),
    Math.max,
  );
  const next = nextBaseFee && ` Next block ${showDecimal(nextBaseFee.gwei, PLACES)} gwei.`;
  const day =
    least !== null &&
    most !== null &&
    ` Over 24 hours ${showDecimal(least, PLACES)} to ${showDecimal(most, PLACES)} gwei.`;
  return html`<p class="now" data-value="${baseFee.gwei}"><strong>${showDecimal(baseFee.gwei, PLACES)}</strong> gwei</p>
<p>Block ${baseFee.block}.${next}${day}</p>`;
}

function summariseRpc(rpc: Rpc): Html {
  const endpoints = rpc?.endpoints ?? [];
  const answering = endpoints.filter(({ ok }) => ok === true);
  const fastest = extreme(
    answering.flatMap(({ latencyMs }) => latencyMs ?? []),
    Math.min,
  );
  if (fastest === null) return html`<p class="now">${UNKNOWN}</p>`;
  const all =
    endpoints.length === 1 ? 'The one endpoint answers' : `${answering.length} of ${endpoints.length} endpoints answer`;
  const lag = extreme(
    answering.flatMap(({ headLagBlocks }) => headLagBlocks ?? []),
    Math.max,
  );
  return html`<p class="now" data-value="${fastest}"><strong>${fastest}</strong> ms</p>
<p>${all}; this is the fastest. ${lagText(lag)}</p>`;
}

function lagText(blocks: number | null): string | null {
  if (blocks === null) return null;
  return blocks === 0
    ? 'None is behind the head.'
    : `At most ${blocks} ${blocks === 1 ? 'block' : 'blocks'} behind the head.`;
}

/** The smallest or greatest value, as it was written. */
function extreme<T extends string | number>(values: readonly T[], pick: (...numbers: number[]) => number): T | null {
  const found = pick(...values.map(Number));
  return values.find((value) => Number(value) === found) ?? null;
}
