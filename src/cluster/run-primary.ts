import type { Config } from '../config.ts';
import { createStop, stopWhenSyncFails } from '../http/lifecycle.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { createDeps } from '../wiring/deps.ts';
import { claimPort } from './port.ts';
import { serveWorkers } from './serve-workers.ts';
import { createWorkers } from './workers.ts';

interface RunOptions {
  /** Additional environment variables of the API processes. */
  env: Record<string, string>;
  /** Closes the parts that all others depend on. */
  close: () => Promise<void>;
  exit: (code: number) => void;
}

/** Runs the primary: it locks the data directory, does all work except HTTP, and ends after the API processes. */
export async function runPrimary(config: Config, { env, close, exit }: RunOptions): Promise<void> {
  const log = createLogger(config.logLevel);
  const onHopeless = () => {
    log.fatal('an API process ended before any has served; the service ends');
    exit(1);
  };
  const workers = createWorkers({ size: config.workers, onHopeless, env, clock: systemClock, log });
  // The API processes load while this process prepares.
  workers.start();
  const part = { kind: 'primary', living: workers.living } as const;
  const deps = await createDeps(config, log, undefined, systemClock, part);
  const { payments, lightningStore, selfTest, metrics, sources } = deps;
  const served = serveWorkers({
    workers,
    settling: payments.forOthers,
    // After the data directory is locked, because API processes of a dead service use the port until then.
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
  // The workers stop first, because their last answers wait for settlements of this process.
  const closeDeps = async () => {
    try {
      await served.stop();
    } finally {
      await deps.close();
      await close();
    }
  };
  const stop = createStop({ app: null, closeDeps, log, exit });
  void stopWhenSyncFails(deps.ledgerSyncFailed, stop, log);
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      // Stopped first, so that a self-test purchase does not fail because of the shutdown.
      void selfTest?.stop();
      void stop(signal);
    });
}
