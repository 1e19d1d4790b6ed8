import { AggregatorRegistry, Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import type { MetricJson, ToPrimary } from './messages.ts';
import type { Worker, Workers } from './workers.ts';

/** How long the primary waits for a process, in milliseconds. The figures of a later one are missing from this reading. */
const WAIT_MS = 1000;

/** The whole service's metrics: the primary's own and those of every worker that answers, aggregated by the library's rules. */
export function createGathering(registry: Registry, workers: Workers, clock: Clock) {
  const waiting = new Map<string, (metrics: readonly MetricJson[]) => void>();
  let asked = 0;
  publishWorkers(registry, workers);

  async function ask(worker: Worker, number: number): Promise<readonly MetricJson[]> {
    const key = `${worker.bootId}:${number}`;
    const late = new AbortController();
    try {
      return await Promise.race([
        new Promise<readonly MetricJson[]>((resolve) => {
          waiting.set(key, resolve);
          workers.send(worker, { kind: 'measure', ask: number });
        }),
        clock.sleep(WAIT_MS, late.signal).then(() => []),
      ]);
    } finally {
      late.abort();
      waiting.delete(key);
    }
  }

  return {
    read: async (): Promise<string> => {
      asked += 1;
      const number = asked;
      const serving = workers.list().filter(({ isListening }) => isListening);
      const [own, ...others] = await Promise.all([
        registry.getMetricsAsJSON(),
        ...serving.map((worker) => ask(worker, number)),
      ]);
      return AggregatorRegistry.aggregate([own, ...others]).metrics();
    },
    measured: ({ bootId }: Worker, message: Extract<ToPrimary, { kind: 'measured' }>): void =>
      waiting.get(`${bootId}:${message.ask}`)?.(message.metrics),
  };
}

function publishWorkers(registry: Registry, workers: Workers): void {
  new Gauge({
    name: 'api_processes',
    help: 'API processes that serve (WORKERS)',
    registers: [registry],
    collect() {
      this.set(workers.list().filter(({ isListening }) => isListening).length);
    },
  });
  new Counter({
    name: 'api_process_restarts_total',
    help: 'API processes that were started in place of one that had ended',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(workers.restarts());
    },
  });
}
