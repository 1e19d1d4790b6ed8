import { type Html, html } from '../html.ts';
import type { Series } from './series.ts';

const WIDTH = 600;
const HEIGHT = 160;
/** Space above and below the lines, so that a flat line does not lie on the border. */
const MARGIN = 12;

/** Draws a series' lines as a small picture, for readers without scripts. A span without a value is a gap. */
export function sketch({ rows, labels }: Series, kind: 'band' | 'lines'): Html | null {
  const values = rows.flatMap((row) => row.values.flatMap((value) => (value === null ? [] : [Number(value)])));
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last || values.length === 0) return null;
  const low = Math.min(...values);
  const spread = Math.max(...values) - low;
  const x = (at: number) => (last.at === first.at ? WIDTH / 2 : ((at - first.at) / (last.at - first.at)) * WIDTH);
  // When all values are equal, the line runs through the middle.
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
  return html`<svg class="sketch" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">${labels.map((_, column) => line(column))}</svg>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
