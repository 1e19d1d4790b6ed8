import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

// How the process ends: in order at a signal; with code 1 on a bug, a slow stop, or a ledger that cannot be synced.

/** Paid requests in flight need some seconds, and an orchestrator usually kills after 30 s. */
const GRACE_MS = 10_000;
/** Otherwise each idle connection would delay the close for its whole keep-alive time. */
const IDLE_SWEEP_MS = 100;

/**
 * The stop makes the service unready, takes no new connections, finishes answers in flight, then closes the parts. It
 * exits with 1 when it is slower than `graceMs`, fails, or gets a second signal. The ledger on disk loses no payment.
 */
export function createStop(
  log: Logger,
  app: FastifyInstance | null,
  closeDeps: () => Promise<void>,
  exit: (code: number) => void,
  graceMs: number = GRACE_MS,
) {
  let stopping = false;

  return async (reason: string, code = 0): Promise<void> => {
    if (stopping) return exit(1);
    stopping = true;
    log.info({ reason }, 'stopping');
    const force = setTimeout(() => {
      log.error({ graceMs }, 'the service did not stop in time; the process ends');
      exit(1);
    }, graceMs);
    try {
      if (app) await closeServer(app);
      await closeDeps();
      log.info('stopped');
      exit(code);
    } catch (error) {
      log.error({ err: error }, 'stopping failed');
      exit(1);
    } finally {
      clearTimeout(force);
    }
  };
}

async function closeServer(app: FastifyInstance): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
  }
}

/** The process's state is then unknown. A supervisor restarts it. */
export function dieOnUnhandled(log: Logger, exit: (code: number) => void): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error, event }, 'an error that no code handled; the process ends');
      exit(1);
    });
  }
}

/** Code 1 once the ledger takes no more writes: the next start checks first what the disk has kept. */
export async function stopWhenSyncFails(
  syncFailed: Promise<Error>,
  stop: ReturnType<typeof createStop>,
  log: Logger,
): Promise<void> {
  const err = await syncFailed;
  log.fatal(
    { err },
    'the ledger could not be synced to its disk and takes no more writes; the service ends, to be started again',
  );
  await stop('the ledger could not be synced to its disk', 1);
}
