import { buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import { createStop, stopWhenSyncFails } from '../http/lifecycle.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { createDeps } from '../wiring/deps.ts';
import type { ToPrimary, ToWorker } from './messages.ts';
import { SHARES_PORT } from './port.ts';
import { type Channel, createPrimaryLink } from './primary-link.ts';
import { BOOT_ID_KEY, RUN_ID_KEY } from './workers.ts';

/** Of the ten seconds that a stop may take, one is left for the primary. */
const GRACE_MS = 9000;

/** Runs an API process: it serves until the primary sends `stop`, and exits when the primary dies. */
export async function runWorker(config: Config, exit: (code: number) => void): Promise<void> {
  const log = createLogger(config.logLevel);
  const names = { bootId: named(BOOT_ID_KEY), runId: named(RUN_ID_KEY) };
  // A new primary takes over the payments of dead processes, so this process must exit.
  process.on('disconnect', () => exit(1));
  // A terminal's Ctrl-C, or a supervisor's SIGTERM, may reach this process too. The primary decides when it stops, because it settles the open payments.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {});
  const channel = openChannel();
  const link = createPrimaryLink(channel, systemClock);
  let stop = () => exit(0);
  link.onStop(() => stop());
  const port = await link.ready;
  const deps = await createDeps(config, log, undefined, systemClock, { kind: 'worker', ...names, link });
  const app = await buildApp(deps);
  const stopServing = createStop({ app, closeDeps: deps.close, log, exit, graceMs: GRACE_MS });
  stop = () => void stopServing('the primary stops');
  void stopWhenSyncFails(deps.ledgerSyncFailed, stopServing, log);
  const at = { host: config.host, port, reusePort: SHARES_PORT };
  const url = await app.listen(at);
  channel.send({ kind: 'listening' });
  log.info({ url, pid: process.pid }, 'an API process is listening');
}

function openChannel(): Channel {
  return {
    // An error of sending is ignored: without a channel this process exits.
    send: (message: ToPrimary) => void process.send?.(message, undefined, undefined, () => {}),
    onMessage: (listener) => void process.on('message', (message: ToWorker) => listener(message)),
  };
}

function named(key: string): string {
  const value = process.env[key];
  if (!value) throw new Error(`${key} is missing: API processes are started by the service itself (WORKERS)`);
  return value;
}
