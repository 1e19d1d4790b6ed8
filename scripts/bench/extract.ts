import { fork } from 'node:child_process';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../src/lib/clock.ts';
import { createWeb } from '../../src/upstream/web/web.ts';
import { percentile } from './lib.ts';

const CALLS = 500;
/** What every fiftieth call asks for, from which call on. All others ask for a page of 100 KB. */
const ODD_EVERY = 50;
const ODD: Readonly<Record<number, string>> = {
  0: 'pdf-bomb',
  3: 'large',
  5: 'pdf',
  7: 'bomb',
  28: 'large',
  30: 'pdf',
};
const LIMITS = { rssMb: 400, p99Ms: 50 };

/** Makes 500 parallel extracts of pages of 100 KB, some of 1.5 MB, of PDFs, and of bombs of 300 MB (gzip) and 700 MB (PDF). Measures memory and the main loop's delay. */
export async function benchExtract(): Promise<void> {
  const pages = fork(new URL('./servers/pages.ts', import.meta.url), { stdio: 'inherit' });
  const [port] = (await once(pages, 'message')) as [number];
  const web = createWeb({
    clock: systemClock,
    userAgent: 'percall/bench',
    measuredFrom: 'http://127.0.0.1',
    timeoutMs: 12_000,
    hostPerMinute: 0,
    pageWorkers: 1,
    dial: { resolve: async () => [], testHosts: new Map([['pages.example', { address: '127.0.0.1', port }]]) },
  });
  const signal = new AbortController().signal;
  await web.extract('http://pages.example/page', signal);
  const loop = monitorEventLoopDelay({ resolution: 5 });
  loop.enable();
  let peakRss = 0;
  const watch = setInterval(() => {
    peakRss = Math.max(peakRss, process.memoryUsage.rss());
  }, 20);
  const outcomes = new Map<string, number>();
  const times: number[] = [];
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CALLS }, async (_, n) => {
      const path = ODD[n % ODD_EVERY] ?? 'page';
      const outcome = await web.extract(`http://pages.example/${path}?${n}`, signal).then(
        () => 200,
        (error: { status?: number }) => error.status ?? 500,
      );
      times.push(performance.now() - started);
      const key = `${path} ${outcome}`;
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
    }),
  );
  const tookMs = performance.now() - started;
  await delay(50);
  clearInterval(watch);
  loop.disable();
  await web.close();
  pages.kill();
  const rssMb = peakRss / 2 ** 20;
  const p99Ms = loop.percentile(99) / 1e6;
  console.log(
    `${CALLS} parallel extracts in ${(tookMs / 1000).toFixed(1)} s, answers after p50 ${percentile(times, 0.5).toFixed(0)} ms, p99 ${percentile(times, 0.99).toFixed(0)} ms`,
  );
  console.log(
    [...outcomes]
      .sort()
      .map(([key, count]) => `${key}: ${count}`)
      .join(', '),
  );
  console.log(
    `peak resident memory ${rssMb.toFixed(0)} MB (limit ${LIMITS.rssMb}), main loop's delay p99 ${p99Ms.toFixed(1)} ms (limit ${LIMITS.p99Ms}), longest ${(loop.max / 1e6).toFixed(1)} ms`,
  );
  if (rssMb > LIMITS.rssMb || p99Ms > LIMITS.p99Ms) throw new Error('outside the limits');
}
