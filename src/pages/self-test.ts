import type { Answers, SelfTestRun } from './answers.ts';
import { shortHash, showMeasure, showTime, showTimeOfDay } from './format.ts';
import { type Html, html } from './html.ts';

type SelfTest = Answers['/selftest'] | null;

/** Renders the last runs as a row of marks, oldest first. Each mark has a text for readers who do not see its colour. */
export function renderStrip(selfTest: SelfTest): Html {
  const runs = [...(selfTest?.recent ?? [])].reverse();
  return html`<ol class="strip" aria-label="Self-tests, oldest first">${runs.map(
    ({ at, ok }) =>
      html`<li class="${ok ? 'good' : 'bad'}"><span class="unseen">${showTimeOfDay(at)} ${ok ? 'passed' : 'failed'}</span></li>`,
  )}</ol>`;
}

/** Renders the newest run as a sentence. */
export function renderLastRun(selfTest: SelfTest): Html {
  const run = selfTest?.recent[0];
  if (!selfTest || !run) return html`<p>No self-test has run yet.</p>`;
  const { runs, ok } = selfTest.last24h;
  return html`<p><strong class="${run.ok ? 'good' : 'bad'}">${run.ok ? 'Passed' : 'Failed'}</strong> at ${showTime(run.at)} UTC${
    run.ok &&
    run.latencyMs !== null &&
    html`: a call bought, settled and answered in ${showMeasure(run.latencyMs, 'ms')}`
  }. ${run.notCharged && 'The call that must fail cost nothing. '}${`${ok} of ${runs} runs passed in the last 24 hours.`}</p>`;
}

/** Renders the last runs as a table, newest first. A settlement links to its transaction. */
export function renderRuns(selfTest: SelfTest, transactionUrl: (hash: string) => string): Html | null {
  const runs = selfTest?.recent ?? [];
  if (runs.length === 0) return null;
  return html`<div class="scroll" role="region" aria-label="Self-tests, newest first" tabindex="0"><table class="cards">
<caption class="unseen">Self-tests, newest first</caption>
<thead><tr><th scope="col">Began (UTC)</th><th scope="col">Result</th><th scope="col">Paid call</th><th scope="col">Failing call</th><th scope="col">Settlement</th></tr></thead>
<tbody>${runs.map((run) => rowOf(run, transactionUrl))}</tbody>
</table></div>`;
}

function chargeOf(notCharged: boolean | null): string {
  if (notCharged === null) return 'not seen';
  return notCharged ? 'not charged' : 'charged';
}

function rowOf(
  { at, ok, latencyMs, notCharged, transaction, reason }: SelfTestRun,
  url: (hash: string) => string,
): Html {
  return html`<tr><th scope="row">${showTime(at)}</th><td class="${ok ? 'good' : 'bad loose'}">${ok ? 'passed' : `failed: ${reason ?? 'no reason given'}`}</td><td data-label="Paid call">${showMeasure(latencyMs, 'ms')}</td><td data-label="Failing call">${chargeOf(notCharged)}</td><td data-label="Settlement">${
    transaction && html`<a href="${url(transaction)}" title="${transaction}"><code>${shortHash(transaction)}</code></a>`
  }</td></tr>
`;
}
