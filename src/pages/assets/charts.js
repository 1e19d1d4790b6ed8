// Draws each `figure.chart` from the table inside it, again when the table, its width or the colour scheme changes.

/** @import uPlot from 'uplot' */
/** uPlot's script defines a property of the global object. @type {typeof uPlot} */
const Plot = Reflect.get(globalThis, 'uPlot');

const HEIGHT = 200;
/** The least time span of a chart in seconds, so that three values do not look like a trend. */
const LEAST_SPAN = 180;
/** Half of the widest label of a time, `13:32:45`, in pixels: the last label stands in the middle of the right edge. */
const HALF_CLOCK = 30;
const scheme = matchMedia('(prefers-color-scheme: dark)');

/** @type {Map<HTMLElement, uPlot>} */
const drawn = new Map();

/** The table as columns: times, then one column per line. @param {HTMLElement} figure @returns {uPlot.AlignedData} */
function readTable(figure) {
  // By its id, because uPlot's legend in the figure is a table, too.
  const rows = [...(document.getElementById(`${figure.id}-rows`)?.children ?? [])];
  const lines = figure.querySelectorAll('thead th').length - 1;
  const times = rows.map((row) => Date.parse(row.querySelector('time')?.dateTime ?? '') / 1000);
  const columns = Array.from({ length: lines }, (_, column) =>
    rows.map((row) => {
      const text = row.querySelectorAll('td')[column]?.textContent ?? '';
      return text === '' || text === '–' ? null : Number(text);
    }),
  );
  return [times, ...columns];
}

/** @param {HTMLElement} figure @returns {uPlot.Options} */
function optionsFor(figure, /** @type {number} */ width) {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const isBand = figure.dataset.chart === 'band';
  const isDaily = figure.dataset.step === 'day';
  const unit = figure.dataset.unit ?? '';
  const labels = [...figure.querySelectorAll('thead th')]
    .slice(1)
    .map((cell) => (cell.textContent ?? '').split(',')[0]);
  const axis = {
    stroke: colour('muted'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: colour('grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    padding: [null, HALF_CLOCK, null, null],
    tzDate: (seconds) => Plot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    scales: {
      x: { range: (_plot, from, to) => [Math.min(from, to - LEAST_SPAN), to] },
      y: { range: (_plot, least, most) => (isBand ? around(least, most) : [0, Math.max(most * 1.15, 1)]) },
    },
    axes: [
      {
        ...axis,
        ...titled('UTC'),
        size: 30,
        space: 58,
        values: (_plot, ticks) => ticks.map(isDaily ? showMonthDay : showClock),
      },
      { ...axis, ...titled(unit), size: 56, values: (_plot, ticks) => ticks.map((tick) => `${+tick.toFixed(4)}`) },
    ],
    series: [
      { label: 'UTC', value: (plot, value, at, index) => showTime(pointed(plot, value, at, index), isDaily) },
      ...labels.map((label, at) => lineOf(`${label}`, at, { isBand, unit, colour })),
    ],
    ...(isBand && { bands: [{ series: [3, 1], fill: colour('band') }] }),
    cursor: { y: false, drag: { x: false, y: false } },
  };
}

/** @param {string} label @param {number} at @param {{ isBand: boolean, unit: string, colour: (name: string) => string }} look @returns {uPlot.Series} */
function lineOf(label, at, { isBand, unit, colour }) {
  const isEdge = isBand && at !== 1;
  return {
    label,
    stroke: colour(isEdge ? 'band-edge' : `line-${isBand ? 1 : (at % 5) + 1}`),
    width: isEdge ? 1 : 2,
    // Dashes differ too, because several lines are hard to distinguish by colour alone.
    ...(!isBand &&
      at > 0 && {
        dash:
          [
            [6, 4],
            [2, 3],
            [10, 3, 2, 3],
            [1, 5],
          ][(at - 1) % 4] ?? [],
      }),
    spanGaps: false,
    value: (plot, value, at, index) => {
      const shown = pointed(plot, value, at, index);
      return shown === null ? '–' : `${shown} ${unit}`;
    },
  };
}

/** @param {string} label @returns {uPlot.Axis} */
function titled(label) {
  return { label, labelSize: 18, labelFont: '12px system-ui, sans-serif', labelGap: 0 };
}

// The value under the cursor, else the newest one: a legend without values would say nothing.
/** @param {uPlot} plot @param {number | null} value @param {number} at @param {number | null} index */
function pointed(plot, value, at, index) {
  if (index !== null && index !== undefined) return value ?? null;
  return [...(plot.data?.[at] ?? [])].findLast((one) => one !== null && one !== undefined) ?? null;
}

/** @param {number | null} seconds @param {boolean} isDaily */
function showTime(seconds, isDaily) {
  if (seconds === null) return '–';
  const text = new Date(seconds * 1000).toISOString();
  return isDaily ? text.slice(0, 10) : text.slice(11, 19);
}

/** @param {number} seconds */
function showMonthDay(seconds) {
  return new Date(seconds * 1000).toISOString().slice(5, 10);
}

/** @param {number} seconds */
function showClock(seconds) {
  const text = new Date(seconds * 1000).toISOString();
  return text.slice(11, seconds % 60 === 0 ? 16 : 19);
}

/** Leaves space around; centres a flat line. @param {number} least @param {number} most @returns {[number, number]} */
function around(least, most) {
  const space = Math.max((most - least) * 0.15, Math.abs(most) * 0.02, 1e-6);
  return [least - space, most + space];
}

/** @param {HTMLElement} figure */
function draw(figure) {
  const place = figure.querySelector('.plot');
  const data = readTable(figure);
  if (!(place instanceof HTMLElement) || data[0].length === 0) return;
  const before = drawn.get(figure);
  if (before && before.series.length === data.length) before.setData(data);
  else {
    before?.destroy();
    place.replaceChildren();
    drawn.set(figure, new Plot(optionsFor(figure, place.clientWidth), data, place));
  }
  const plot = drawn.get(figure);
  if (plot?.cursor.idx === null || plot?.cursor.idx === undefined)
    plot?.setLegend({ idx: /** @type {never} */ (null) });
  exposeData(figure, data);
}

/** Shows tests what is drawn. @param {HTMLElement} figure @param {uPlot.AlignedData} data */
function exposeData(figure, data) {
  const main = [...(data[figure.dataset.chart === 'band' ? 2 : 1] ?? [])];
  figure.dataset.points = `${data[0].length}`;
  figure.dataset.latest = `${main.findLast((value) => value !== null) ?? ''}`;
}

function redrawAll() {
  // A copy, because drawing again changes the map.
  for (const [figure, plot] of [...drawn]) {
    plot.destroy();
    drawn.delete(figure);
    draw(figure);
  }
}

/** @type {HTMLElement[]} */
const figures = [...document.querySelectorAll('figure.chart')].filter((figure) => figure instanceof HTMLElement);
const widths = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const plot = drawn.get(/** @type {HTMLElement} */ (target.closest('figure')));
    if (plot && plot.width !== contentRect.width) plot.setSize({ width: contentRect.width, height: HEIGHT });
  }
});
for (const figure of figures) {
  draw(figure);
  const place = figure.querySelector('.plot');
  if (place) widths.observe(place);
}
document.addEventListener('fresh', () => figures.forEach(draw));
scheme.addEventListener('change', redrawAll);
