import type { Config } from '../config.ts';
import { createStop } from '../http/lifecycle.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { createDeps } from '../wiring/deps.ts';
import { claimPort } from './port.ts';
import { serveWorkers } from './serve-workers.ts';
import { createWorkers } from './workers.ts';

interface RunOptions {
  /** What the API processes' environment has beside this one's. */
  env: Record<string, string>;
  /** Ends what stands behind everything else. */
  close: () => Promise<void>;
  exit: (code: number) => void;
}

/** The process above the API processes: takes the data directory, does every job that is not HTTP, and ends last. */
export async function runPrimary(config: Config, { env, close, exit }: RunOptions): Promise<void> {
  const log = createLogger(config.logLevel);
  const onHopeless = () => {
    log.fatal('an API process ended before any has served; leaving');
    exit(1);
  };
  const workers = createWorkers({ size: config.workers, onHopeless, env, clock: systemClock, log });
  // They load while this process prepares.
  workers.start();
  const part = { kind: 'primary', living: workers.living } as const;
  const deps = await createDeps(config, log, undefined, systemClock, part);
  const { payments, lightningStore, selfTest, metrics, sources } = deps;
  const served = serveWorkers({
    workers,
    settling: payments.forOthers,
    // With the data directory held: API processes of a service that has died had the port until then.
    port: await claimPort(config.host, config.port),
    metrics,
    collector: sources.collector,
    clock: systemClock,
    log,
    takeOver: async (bootId) => {
      await Promise.all([payments.forOthers.takeOver(), lightningStore.releaseLeasesOf(bootId)]);
    },
    onServing: () => {
      selfTest?.start();
      log.info({ workers: config.workers, publicOrigin: config.publicOrigin }, 'serving');
    },
  });
  // The workers first: their last answers wait for settlements of this process.
  const closeDeps = async () => {
    try {
      await served.stop();
    } finally {
      await deps.close();
      await close();
    }
  };
  const stop = createStop({ app: null, closeDeps, log, exit });
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // First: a purchase of our own must not blame the shutdown.
      void selfTest?.stop();
      void stop(signal);
    });
}
