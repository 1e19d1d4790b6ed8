import type { FastifyInstance } from 'fastify';
import { CLIENTS, type Owner, runAs, WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import { closeAll } from './sqlite.ts';

/** A request as a client sends it. */
export interface ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The client's address, as the service sees it. */
  readonly from: string;
  readonly body?: string;
}

export interface ClientAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a client gets: an answer, or how the connection ended. */
export type Received = ClientAnswer | { readonly broken: 'refused' | 'reset' | 'abandoned' };

interface OpenCall {
  readonly end: (received: Received) => void;
  readonly control: AbortController;
}

interface Running {
  readonly app: FastifyInstance;
  close(): Promise<void>;
}

interface InstanceOptions {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Starts the service in the caller's context. */
  start(name: string): Promise<Running>;
  /** Called with every answer when it leaves, whether or not it arrives. */
  onAnswer(request: ClientRequest, answer: ClientAnswer): void;
  /** Called when the instance could not start. */
  onFailed(error: unknown): void;
}

const RESTART_MS = 2000;

/** One process of the service: started, killed, put to sleep, stopped; spoken to over HTTP. */
export function createInstance({ name, scheduler, random, start, onAnswer, onFailed }: InstanceOptions) {
  let owner: Owner = { name, state: 'dead' };
  let running: Running | null = null;
  let starts = 0;
  const open = new Set<OpenCall>();

  const toClient = (label: string, run: () => void) => void scheduler.after(random.between(1, 4), CLIENTS, label, run);

  async function boot(): Promise<void> {
    if (!isDead(owner)) return;
    starts += 1;
    const born: Owner = { name: `${name}.${starts}`, state: 'running' };
    owner = born;
    try {
      const started = await runAs(born, () => start(name));
      if (isDead(born)) return;
      running = started;
    } catch (error) {
      if (isDead(born)) return;
      markDead(born);
      onFailed(error);
      // The supervisor of the processes starts it again.
      scheduler.after(RESTART_MS, WORLD, `start ${name}`, () => void boot());
    }
  }

  function markDead(dead: Owner): void {
    dead.state = 'dead';
    scheduler.forget(dead);
    closeAll(dead);
    running = null;
    for (const call of open) toClient('reset', () => call.end({ broken: 'reset' }));
    open.clear();
  }

  function inject(request: ClientRequest, call: OpenCall): void {
    const { method, url, headers, from, body } = request;
    const sent = {
      method: method as 'GET',
      url,
      headers: { ...headers },
      remoteAddress: from,
      signal: call.control.signal,
    };
    running?.app.inject({ ...sent, ...(body !== undefined && { payload: body }) }, (error, response) => {
      if (error || !response) {
        open.delete(call);
        return toClient('reset', () => call.end({ broken: 'reset' }));
      }
      const answer = {
        status: response.statusCode,
        headers: response.headers as Record<string, string>,
        body: response.body,
      };
      onAnswer(request, answer);
      // What a process has written when it is killed arrives, or not.
      toClient(`answer ${answer.status}`, () => {
        const lost = !open.delete(call);
        if (!lost) call.end(answer);
      });
    });
  }

  return {
    name,
    owner: (): Owner => owner,
    isUp: (): boolean => running !== null && owner.state === 'running',
    isDead: (): boolean => isDead(owner),
    starts: (): number => starts,
    boot,
    /** Ends it at once, whatever it does. */
    kill: () => {
      if (!isDead(owner)) markDead(owner);
    },
    sleep: () => {
      if (owner.state === 'running') owner.state = 'asleep';
    },
    wake: () => {
      if (owner.state === 'asleep') owner.state = 'running';
    },
    /** Ends it as a signal does: what it still has to do it does first. */
    stop: async (): Promise<void> => {
      const [ending, stopping] = [owner, running];
      if (!stopping || ending.state !== 'running') return;
      await runAs(ending, () => stopping.close()).catch(onFailed);
      if (!isDead(ending)) markDead(ending);
    },
    /** Sends a request; `abandon` ends the connection from the client's side. */
    call(request: ClientRequest): { received: Promise<Received>; abandon(): void } {
      const { promise: received, resolve } = Promise.withResolvers<Received>();
      let ended = false;
      const end = (what: Received) => {
        ended = true;
        resolve(what);
      };
      const call: OpenCall = { end, control: new AbortController() };
      scheduler.after(random.between(1, 4), WORLD, `connect ${name}`, () => {
        if (!running || isDead(owner)) return toClient('refused', () => end({ broken: 'refused' }));
        open.add(call);
        scheduler.after(0, owner, `request ${request.method} ${request.url.split('?', 1)[0]}`, () =>
          inject(request, call),
        );
      });
      const abandon = () => {
        if (ended) return;
        end({ broken: 'abandoned' });
        if (open.delete(call)) scheduler.after(1, owner, 'client gone', () => call.control.abort());
      };
      return { received, abandon };
    },
  };
}

export type Instance = ReturnType<typeof createInstance>;

const isDead = ({ state }: Owner): boolean => state === 'dead';

/** Lines of the service's log, kept to be searched. */
export function createLogSink(limit = 20_000) {
  const lines: string[] = [];
  return {
    write: (line: string) => {
      if (lines.length < limit) lines.push(line);
    },
    lines: (): readonly string[] => lines,
  };
}
