import type { Registry } from 'prom-client';
import { createBundle } from '../lib/bundle.ts';
import type { Clock } from '../lib/clock.ts';
import type { SettlesForOthers } from '../payment/settling.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import { createGathering } from './gather-metrics.ts';
import type { Heartbeat } from './messages.ts';
import type { Worker, Workers } from './workers.ts';

/** How far behind a worker's view of the primary may be, in milliseconds. */
const TICK_MS = 100;
/** A heartbeat is sent at least this often, in milliseconds, so that its absence means something. */
const HEARTBEAT_MS = 1000;

interface ServeWorkersOptions {
  workers: Workers;
  settling: Pick<SettlesForOthers, 'carry' | 'report'>;
  port: number;
  collector: CollectorView;
  /** The primary's own figures, with those that are read from the shared files. */
  metrics: Registry;
  /** Takes over what the dead left: everything of processes that are not workers any more. */
  takeOver(bootId: string): Promise<void>;
  onServing(): void;
  clock: Clock;
  log: { warn(detail: object, message: string): void };
}

/**
 * The primary's side of several processes: it sends heartbeats to the workers, settles what they ask for, takes over what a dead one left, and
 * puts the figures of all together. It serves no HTTP itself.
 */
export function serveWorkers({ workers, settling, takeOver, log, ...options }: ServeWorkersOptions) {
  const gathering = createGathering(options.metrics, workers, options.clock);
  const heartbeats = createHeartbeats({ workers, settling, ...options });
  const ended = createEndings(workers);

  async function sendMetrics(worker: Worker, ask: number): Promise<void> {
    const text = await gathering.read().catch((err) => {
      log.warn({ err }, 'the figures of all processes could not be put together');
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
      // What fails here is taken over by the next round of maintenance.
      takeOver(bootId).catch((err) => log.warn({ err }, 'what a dead API process left was not taken over'));
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

/** Sends all workers how the primary stands: at each change, and once a second without one. */
function createHeartbeats({ workers, settling, port, collector, clock }: HeartbeatsOptions) {
  let sent = '';
  let sentMs = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Null where this process does not settle: its workers then have nothing to count on. */
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

/** Reports ended rows to the worker that asked; many that end in one block are one message. */
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
