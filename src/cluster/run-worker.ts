import { buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import { createStop } from '../http/lifecycle.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { createDeps } from '../wiring/deps.ts';
import type { ToPrimary, ToWorker } from './messages.ts';
import { SHARES_PORT } from './port.ts';
import { type Channel, createPrimaryLink } from './primary-link.ts';
import { BOOT_ID_KEY, RUN_ID_KEY } from './workers.ts';

/** Leaves the primary a second of the ten that a stop may take. */
const GRACE_MS = 9000;

/** An API process: serves until the primary says stop, and not a moment longer than the primary lives. */
export async function runWorker(config: Config, exit: (code: number) => void): Promise<void> {
  const log = createLogger(config.logLevel);
  const names = { bootId: named(BOOT_ID_KEY), runId: named(RUN_ID_KEY) };
  // A new primary takes over what the dead left, and must not find us among the living.
  process.on('disconnect', () => exit(1));
  // A terminal's Ctrl-C reaches us too, and a supervisor's SIGTERM may: the primary decides, because it settles what we still owe.
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
  const at = { host: config.host, port, reusePort: SHARES_PORT };
  const url = await app.listen(at);
  channel.send({ kind: 'listening' });
  log.info({ url, pid: process.pid }, 'an API process is listening');
}

function openChannel(): Channel {
  return {
    // What cannot be sent any more needs no answer: we are about to leave.
    send: (message: ToPrimary) => void process.send?.(message, undefined, undefined, () => {}),
    onMessage: (listener) => void process.on('message', (message: ToWorker) => listener(message)),
  };
}

function named(key: string): string {
  const value = process.env[key];
  if (!value) throw new Error(`${key} is missing: API processes are started by the service itself (WORKERS)`);
  return value;
}
