import { call } from './service.ts';
import { until } from './workers.ts';

/** The value of a metric, named with its labels as in the text of /metrics; null without a sample. */
export async function metricOf(origin: string, name: string): Promise<number | null> {
  let body = '';
  // A busy primary may be too late for a reading.
  await until('the figures are read', async () => {
    const answer = await call(origin, '/metrics');
    body = answer.body;
    return answer.status === 200;
  });
  const line = body.split('\n').find((text) => text.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}
