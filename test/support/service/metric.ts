import { call } from './service.ts';
import { until } from './workers.ts';

/** The value of a metric in one reading, named with its labels as in the text of /metrics; null without a sample. */
export type Figures = (name: string) => number | null;

/** One reading of all metrics. */
export async function readFigures(origin: string): Promise<Figures> {
  let lines: string[] = [];
  // A busy primary may be too late for a reading.
  await until('the figures are read', async () => {
    const { status, body } = await call(origin, '/metrics');
    lines = body.split('\n');
    return status === 200;
  });
  return (name) => {
    const line = lines.find((text) => text.startsWith(`${name} `));
    return line === undefined ? null : Number(line.slice(name.length + 1));
  };
}

/** The value of one metric in a reading of its own. */
export async function metricOf(origin: string, name: string): Promise<number | null> {
  return (await readFigures(origin))(name);
}
