import type { Registry } from 'prom-client';
import { createBundle } from '../lib/bundle.ts';
import type { Clock } from '../lib/clock.ts';
import type { SettlesForOthers } from '../payment/settling.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import { createGathering } from './gather-metrics.ts';
import type { Heartbeat } from './messages.ts';
import type { Worker, Workers } from './workers.ts';

/** How often the primary checks its state for changes, in milliseconds: a worker's view is at most so old. */
const TICK_MS = 100;
/** A heartbeat is sent at least this often, in milliseconds, so that workers notice a primary that hangs. */
const HEARTBEAT_MS = 1000;

interface ServeWorkersOptions {
  workers: Workers;
  settling: Pick<SettlesForOthers, 'carry' | 'report'>;
  port: number;
  collector: CollectorView;
  /** The primary's own figures, including those that are read from shared files. */
  metrics: Registry;
  /** Takes over the open payments of a dead worker. */
  takeOver(bootId: string): Promise<void>;
  onServing(): void;
  clock: Clock;
  log: { warn(detail: object, message: string): void };
}

/**
 * The primary's part with several processes: it sends heartbeats to the workers, settles their payments, takes over the payments of dead workers,
 * and aggregates all metrics. It serves no HTTP itself.
 */
export function serveWorkers({ workers, settling, takeOver, log, ...options }: ServeWorkersOptions) {
  const gathering = createGathering(options.metrics, workers, options.clock);
  const heartbeats = createHeartbeats({ workers, settling, ...options });
  const ended = createEndings(workers);

  async function sendMetrics(worker: Worker, ask: number): Promise<void> {
    const text = await gathering.read().catch((err) => {
      log.warn({ err }, 'the figures of all processes could not be aggregated');
      return null;
    });
    workers.send(worker, { kind: 'metrics', ask, text });
  }

  workers.listen({
    onMessage: (worker, message) => {
      switch (message.kind) {
        case 'hello':
          heartbeats.sendTo(worker);
          break;
        case 'settle':
          for (const id of message.ids) void settling.carry(id).then(() => ended(worker)(id));
          break;
        case 'measured':
          gathering.measured(worker, message);
          break;
        case 'read':
          void sendMetrics(worker, message.ask);
          break;
      }
    },
    onDeath: (bootId) => {
      // After a failure the next round of maintenance takes them over.
      takeOver(bootId).catch((err) => log.warn({ err }, 'the payments of a dead API process were not taken over'));
    },
    onFirstListening: options.onServing,
  });
  heartbeats.start();

  return {
    stop: async (): Promise<void> => {
      try {
        await workers.stop();
      } finally {
        heartbeats.stop();
      }
    },
  };
}

type HeartbeatsOptions = Pick<ServeWorkersOptions, 'workers' | 'settling' | 'port' | 'collector' | 'clock'>;

/** Sends the primary's state to all workers: at each change, and once a second without a change. */
function createHeartbeats({ workers, settling, port, collector, clock }: HeartbeatsOptions) {
  let sent = '';
  let sentMs = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Null while this process does not settle. Its workers then get no heartbeat. */
  function now(): Heartbeat | null {
    const report = settling.report();
    return report && { port, report, collector: collector.status() };
  }

  function tick(): void {
    const heartbeat = now();
    if (!heartbeat) return;
    const text = JSON.stringify(heartbeat);
    const nowMs = clock.nowMs();
    if (text === sent && nowMs - sentMs < HEARTBEAT_MS) return;
    sent = text;
    sentMs = nowMs;
    workers.sendAll({ kind: 'heartbeat', heartbeat });
  }

  return {
    sendTo: (worker: Worker): void => {
      const heartbeat = now();
      if (heartbeat) workers.send(worker, { kind: 'heartbeat', heartbeat });
    },
    start: (): void => {
      tick();
      timer = setInterval(tick, TICK_MS);
    },
    stop: (): void => clearInterval(timer),
  };
}

/** Reports ended payments to the worker that requested them. Payments that end in one event loop turn are one message. */
function createEndings(workers: Workers): (worker: Worker) => (id: string) => void {
  const bundles = new WeakMap<Worker, (id: string) => void>();
  return (worker) => {
    const known = bundles.get(worker);
    if (known) return known;
    const report = createBundle<string>((ids) => workers.send(worker, { kind: 'ended', ids }));
    bundles.set(worker, report);
    return report;
  };
}
