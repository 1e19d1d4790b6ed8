import { nowSeconds } from '../lib/clock.ts';
import type { Answers } from './answers.ts';
import { renderChart } from './chart.ts';
import { showMeasure, UNKNOWN } from './format.ts';
import { type Html, html } from './html.ts';
import type { PageParts } from './pages-deps.ts';
import { FEES, feeSeries, LATENCY, latencySeries } from './series.ts';

type Fees = Answers['/fees'] | null;
type Rpc = Answers['/rpc'] | null;

/** The base fee of the last minutes. */
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

/** The latency of every endpoint that is probed, over the last minutes. */
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
  if (!fees?.baseFee) return html`<p class="now">${UNKNOWN}</p>`;
  const { baseFee, nextBaseFee, hours } = fees;
  const least = extreme(
    hours.map(({ minGwei }) => minGwei),
    Math.min,
  );
  const most = extreme(
    hours.map(({ maxGwei }) => maxGwei),
    Math.max,
  );
  return html`<p class="now" data-value="${baseFee.gwei}"><strong>${baseFee.gwei}</strong> gwei</p>
<p>Block ${baseFee.block}.${nextBaseFee && ` Next block ${nextBaseFee.gwei} gwei.`}${
    least !== null && ` Over 24 hours ${least} to ${most} gwei.`
  }</p>`;
}

function summariseRpc(rpc: Rpc): Html {
  const endpoints = rpc?.endpoints ?? [];
  const answering = endpoints.filter(({ ok }) => ok === true);
  const fastest = extreme(
    answering.flatMap(({ latencyMs }) => latencyMs ?? []),
    Math.min,
  );
  const lag = extreme(
    answering.flatMap(({ headLagBlocks }) => headLagBlocks ?? []),
    Math.max,
  );
  if (fastest === null) return html`<p class="now">${UNKNOWN}</p>`;
  return html`<p class="now" data-value="${fastest}"><strong>${fastest}</strong> ms</p>
<p>${`${answering.length} of ${endpoints.length} ${endpoints.length === 1 ? 'endpoint answers' : 'endpoints answer'}`}, the fastest in this time; ${
    lag === 0
      ? 'none is behind the head'
      : html`at most ${showMeasure(lag, lag === 1 ? 'block' : 'blocks')} behind the head`
  }.</p>`;
}

/** The least or the greatest, as it was written. */
function extreme<T extends string | number>(values: readonly T[], pick: (...numbers: number[]) => number): T | null {
  const found = pick(...values.map(Number));
  return values.find((value) => Number(value) === found) ?? null;
}
