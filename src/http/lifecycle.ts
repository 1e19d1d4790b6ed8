import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

/** What an orchestrator usually grants before it kills (30 s) leaves room; paid requests in flight need some seconds. */
const GRACE_MS = 10_000;
/** A connection that goes idle after its last answer would hold the close for its whole keep-alive time. */
const IDLE_SWEEP_MS = 100;

interface StopOptions {
  /** Null in a process that serves no HTTP itself. */
  app: FastifyInstance | null;
  /** Ends everything behind the application; called when the last answer is out. */
  closeDeps: () => Promise<void>;
  log: Logger;
  exit: (code: number) => void;
  graceMs?: number;
}

/**
 * Makes the function that stops the service: not ready at once, no new connections, answers in flight finish, then the parts close.
 * Exit code 0, or 1 when that takes longer than the grace, fails, or a second signal asks for haste: nothing of a payment is lost
 * either way, the ledger stands on disk.
 */
export function createStop({ app, closeDeps, log, exit, graceMs = GRACE_MS }: StopOptions) {
  let stopping = false;

  async function close(): Promise<void> {
    if (app) await closeServer(app);
    await closeDeps();
  }

  async function closeServer(app: FastifyInstance): Promise<void> {
    const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS);
    try {
      await app.close();
    } finally {
      clearInterval(sweep);
    }
  }

  return async (reason: string): Promise<void> => {
    if (stopping) return exit(1);
    stopping = true;
    log.info({ reason }, 'stopping');
    const force = setTimeout(() => {
      log.error({ graceMs }, 'not stopped in time; leaving');
      exit(1);
    }, graceMs);
    try {
      await close();
      log.info('stopped');
      exit(0);
    } catch (error) {
      log.error({ err: error }, 'stopping failed');
      exit(1);
    } finally {
      clearTimeout(force);
    }
  };
}

/** Ends the process on any error that nobody handled: its state is unknown, and a supervisor restarts it into a known one. */
export function dieOnUnhandled(log: Logger, exit: (code: number) => void): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error, event }, 'an error that nothing handled; leaving');
      exit(1);
    });
  }
}
