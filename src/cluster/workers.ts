import cluster, { type Worker } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import type { ToPrimary, ToWorker } from './messages.ts';

/** The environment variable that names an API process to itself. */
export const BOOT_ID_KEY = 'PERCALL_BOOT_ID';
/** The one that names the run of the primary: the same for the whole crew, on no disk. */
export const RUN_ID_KEY = 'PERCALL_RUN_ID';

/** Back-off of the restarts in a row; one that has served for longer than the longest starts over. */
const BACK_OFF_MS = 250;
const MAX_BACK_OFF_MS = 15_000;

/** An API process, from before it runs until it is known to be dead. */
export interface Member {
  readonly bootId: string;
  readonly worker: Worker;
  readonly bornMs: number;
  isListening: boolean;
}

interface CrewOptions {
  size: number;
  /** One ended before any has ever served: starting another would not help. */
  onHopeless(): void;
  /** What the API processes' environment has beside this one's. */
  env: Record<string, string>;
  clock: Clock;
  log: { info(detail: object, message: string): void; error(detail: object, message: string): void };
}

/** What the primary does about its crew. Before it listens nothing is expected of it: an API process touches nothing until it is told how things stand. */
export interface CrewEvents {
  onMessage(member: Member, message: Exclude<ToPrimary, { kind: 'listening' }>): void;
  /** The process is dead: the system says so. What it left may be taken over. */
  onDeath(bootId: string): void;
  onFirstListening(): void;
}

/**
 * The API processes: as many as asked for, each with a boot id that is known before it runs. One that dies is replaced, after a pause
 * that grows while they keep dying.
 */
export function createCrew({ size, onHopeless, env, clock, log }: CrewOptions) {
  const members = new Set<Member>();
  const ended = new AbortController();
  const runId = randomUUID();
  let events: CrewEvents | null = null;
  let failures = 0;
  let restarts = 0;
  let hasServed = false;
  let isClean = true;

  function fork(): void {
    const bootId = randomUUID();
    const worker = cluster.fork({ ...env, [BOOT_ID_KEY]: bootId, [RUN_ID_KEY]: runId });
    const member: Member = { bootId, worker, bornMs: clock.nowMs(), isListening: false };
    members.add(member);
    worker.on('message', (message: ToPrimary) => {
      if (message.kind === 'listening') onListening(member);
      else events?.onMessage(member, message);
    });
    // A channel that breaks is told by the end of the process, which follows.
    worker.on('error', () => {});
    worker.once('exit', (code, signal) => void onExit(member, code, signal));
  }

  function onListening(member: Member): void {
    member.isListening = true;
    if (hasServed) return;
    hasServed = true;
    events?.onFirstListening();
  }

  async function onExit(member: Member, code: number | null, signal: string | null): Promise<void> {
    members.delete(member);
    events?.onDeath(member.bootId);
    if (ended.signal.aborted) {
      isClean &&= code === 0;
      return;
    }
    log.error({ code, signal }, 'an API process has ended');
    if (!hasServed) return onHopeless();
    failures = clock.nowMs() - member.bornMs > MAX_BACK_OFF_MS ? 0 : failures + 1;
    const pauseMs = failures === 0 ? 0 : Math.min(BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
    await clock.sleep(pauseMs, ended.signal).catch(() => {});
    if (ended.signal.aborted) return;
    restarts += 1;
    fork();
  }

  function send(member: Member, message: ToWorker): void {
    // Whoever is gone by then hears nothing, and needs to hear nothing.
    if (member.worker.isConnected()) member.worker.send(message, () => {});
  }

  return {
    members: (): Member[] => [...members],
    /** Boot ids of all that may be alive: no row of theirs is a dead one's. */
    living: (): string[] => [...members].map(({ bootId }) => bootId),
    restarts: (): number => restarts,
    send,
    sendAll: (message: ToWorker): void => {
      for (const member of members) send(member, message);
    },
    start: (): void => {
      for (let count = 0; count < size; count++) fork();
    },
    listen: (given: CrewEvents): void => {
      events = given;
    },
    /** Lets every process finish its answers; rejects when one did not end well. */
    stop: async (): Promise<void> => {
      ended.abort();
      const gone = [...members].map(({ worker }) => new Promise((resolve) => worker.once('exit', resolve)));
      for (const member of members) send(member, { kind: 'stop' });
      await Promise.all(gone);
      if (!isClean) throw new Error('an API process did not stop in time');
    },
  };
}

export type Crew = ReturnType<typeof createCrew>;
