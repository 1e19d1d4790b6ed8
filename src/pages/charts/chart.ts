import { showTimeOfDay } from '../format.ts';
import { type Html, html } from '../html.ts';
import type { Series } from './series.ts';
import { sketch } from './sketch.ts';

/** A chart as a page places it. */
interface Chart {
  /** The prefix of its elements' ids; unique on the page. */
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** `band`: three columns, drawn as an area between the outer two and a line for the middle one. `lines`: one line per column. */
  readonly kind: 'band' | 'lines';
  readonly series: Series;
  /** The chart's content in a sentence, for readers who do not see the drawing. */
  readonly summary: Html;
}

/**
 * Renders a figure that contains its data as a table. Scripts draw the chart from the table, and draw it again when the table changes.
 * Screen readers read the table. Without scripts the page shows a sketch of the same lines.
 */
export function renderChart({ id, title, unit, kind, series, summary }: Chart): Html {
  const titleId = `${id}-title`;
  return html`<figure class="chart" data-chart="${kind}" data-unit="${unit}" id="${id}" aria-labelledby="${titleId}">
<figcaption>
<h3 id="${titleId}">${title}</h3>
<div class="reading" id="${id}-summary" data-live>${summary}</div>
</figcaption>
<div class="plot" aria-hidden="true">${sketch(series, kind) ?? html`<p class="empty">Nothing yet.</p>`}</div>
<details>
<summary>The same as a table</summary>
<div class="scroll" role="region" aria-labelledby="${titleId}" tabindex="0">
<table class="figures">
<thead><tr><th scope="col">Time (UTC)</th>${series.labels.map((label) => html`<th scope="col">${label}, ${unit}</th>`)}</tr></thead>
<tbody id="${id}-rows" data-live>${series.rows.map(rowOf)}</tbody>
</table>
</div>
</details>
</figure>`;
}

function rowOf({ at, values }: Series['rows'][number]): Html {
  return html`<tr><th scope="row">${showTimeOfDay(at)}</th>${values.map((value) => html`<td>${value ?? '–'}</td>`)}</tr>
`;
}
