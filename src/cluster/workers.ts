import cluster, { type Worker as WorkerProcess } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import type { ToPrimary, ToWorker } from './messages.ts';

/** The environment variable that gives an API process its boot id. */
export const BOOT_ID_KEY = 'PERCALL_BOOT_ID';
/** The environment variable with the id of the primary's run. It is the same for all its workers, and on no disk. */
export const RUN_ID_KEY = 'PERCALL_RUN_ID';

/** Back-off of consecutive restarts. A process that has run for longer than the longest pause resets it. */
const BACK_OFF_MS = 250;
const MAX_BACK_OFF_MS = 15_000;

/** An API process, from before its start until its death is known. */
export interface Worker {
  readonly bootId: string;
  readonly process: WorkerProcess;
  readonly bornMs: number;
  isListening: boolean;
}

interface WorkersOptions {
  size: number;
  /** Called when a process ended before any process has ever served. Starting another would not help. */
  onHopeless(): void;
  /** Additional environment variables of the API processes. */
  env: Record<string, string>;
  clock: Clock;
  log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** The primary's handlers for events of its workers. A worker does nothing before its first heartbeat. */
export interface WorkerEvents {
  onMessage(worker: Worker, message: Exclude<ToPrimary, { kind: 'listening' }>): void;
  /** The system reports that the process is dead. Its payments may be taken over. */
  onDeath(bootId: string): void;
  onFirstListening(): void;
}

/**
 * Runs `size` API processes, each with a boot id that is known before its start. A process that dies is replaced after a pause, which grows with
 * consecutive deaths.
 */
export function createWorkers({ size, onHopeless, env, clock, log }: WorkersOptions) {
  const workers = new Set<Worker>();
  const ended = new AbortController();
  const runId = randomUUID();
  const nextPauseMs = createBackOff(clock);
  let events: WorkerEvents | null = null;
  let restarts = 0;
  let hasServed = false;
  let isClean = true;

  function fork(): void {
    const worker = forkWorker({ ...env, [RUN_ID_KEY]: runId }, clock.nowMs());
    workers.add(worker);
    worker.process.on('message', (message: ToPrimary) => {
      if (message.kind === 'listening') onListening(worker);
      else events?.onMessage(worker, message);
    });
    // After a broken channel the process ends, and `exit` is handled.
    worker.process.on('error', () => {});
    worker.process.once('exit', (code, signal) => void onExit(worker, code, signal));
  }

  function onListening(worker: Worker): void {
    worker.isListening = true;
    if (!hasServed) events?.onFirstListening();
    hasServed = true;
  }

  async function onExit(worker: Worker, code: number | null, signal: string | null): Promise<void> {
    workers.delete(worker);
    events?.onDeath(worker.bootId);
    if (ended.signal.aborted) {
      isClean &&= code === 0;
      return;
    }
    log.error({ code, signal }, 'an API process has ended');
    if (!hasServed) return onHopeless();
    await clock.sleep(nextPauseMs(worker.bornMs), ended.signal).catch(() => {});
    if (ended.signal.aborted) return;
    restarts += 1;
    fork();
  }

  return {
    ...mailTo(workers),
    restarts: (): number => restarts,
    start: (): void => {
      for (let count = 0; count < size; count++) fork();
    },
    listen: (given: WorkerEvents): void => {
      events = given;
    },
    /** Lets every process finish its answers. Rejects when a process did not stop in time. */
    stop: async (): Promise<void> => {
      ended.abort();
      await endAll(workers);
      if (!isClean) throw new Error('an API process did not stop in time');
    },
  };
}

export type Workers = ReturnType<typeof createWorkers>;

function forkWorker(env: Record<string, string>, bornMs: number): Worker {
  const bootId = randomUUID();
  return { bootId, process: cluster.fork({ ...env, [BOOT_ID_KEY]: bootId }), bornMs, isListening: false };
}

/**
 * Computes the pause before the next restart, in milliseconds, from the start time of the process that ended. There is none after a process that ran
 * for longer than the longest pause.
 */
function createBackOff(clock: Clock): (bornMs: number) => number {
  let failures = 0;
  return (bornMs) => {
    failures = clock.nowMs() - bornMs > MAX_BACK_OFF_MS ? 0 : failures + 1;
    return failures === 0 ? 0 : Math.min(BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
  };
}

function mailTo(workers: ReadonlySet<Worker>) {
  return {
    list: (): Worker[] => [...workers],
    /** Boot ids of all processes that may be alive. Their payments are not taken over. */
    living: (): string[] => [...workers].map(({ bootId }) => bootId),
    send,
    sendAll: (message: ToWorker): void => {
      for (const worker of workers) send(worker, message);
    },
  };
}

/** Sending to a worker that has ended does nothing. */
function send({ process }: Worker, message: ToWorker): void {
  if (process.isConnected()) process.send(message, () => {});
}

async function endAll(workers: ReadonlySet<Worker>): Promise<void> {
  const gone = [...workers].map(({ process }) => new Promise((resolve) => process.once('exit', resolve)));
  for (const worker of workers) send(worker, { kind: 'stop' });
  await Promise.all(gone);
}
