import { AggregatorRegistry, Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../lib/clock.ts';
import type { MetricJson, ToPrimary } from './messages.ts';
import type { Crew, Member } from './workers.ts';

/** A process that takes longer is told of the next time. */
const WAIT_MS = 1000;

/** The whole service's metrics: the primary's own and those of every API process that answers, put together by the library's rules. */
export function createGathering(registry: Registry, crew: Crew, clock: Clock) {
  const waiting = new Map<string, (metrics: readonly MetricJson[]) => void>();
  let asked = 0;
  publishCrew(registry, crew);

  async function ask(member: Member, number: number): Promise<readonly MetricJson[]> {
    const key = `${member.bootId}:${number}`;
    const late = new AbortController();
    try {
      return await Promise.race([
        new Promise<readonly MetricJson[]>((resolve) => {
          waiting.set(key, resolve);
          crew.send(member, { kind: 'measure', ask: number });
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
      const serving = crew.members().filter(({ isListening }) => isListening);
      const [own, ...others] = await Promise.all([
        registry.getMetricsAsJSON(),
        ...serving.map((member) => ask(member, number)),
      ]);
      return AggregatorRegistry.aggregate([own, ...others]).metrics();
    },
    measured: ({ bootId }: Member, message: Extract<ToPrimary, { kind: 'measured' }>): void =>
      waiting.get(`${bootId}:${message.ask}`)?.(message.metrics),
  };
}

function publishCrew(registry: Registry, crew: Crew): void {
  new Gauge({
    name: 'api_processes',
    help: 'API processes that serve (WORKERS)',
    registers: [registry],
    collect() {
      this.set(crew.members().filter(({ isListening }) => isListening).length);
    },
  });
  new Counter({
    name: 'api_process_restarts_total',
    help: 'API processes that were started in place of one that had ended',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(crew.restarts());
    },
  });
}
