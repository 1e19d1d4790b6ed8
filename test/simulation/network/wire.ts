import { currentOwner, type Owner, WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';

/** A request as a host of the simulated world gets it. */
export interface WireRequest {
  readonly origin: string;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Who sent it. */
  readonly from: Owner;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
}

/** How the wire itself treats one request: `before` and `after` are about whether the host has acted when the caller hears of the failure. */
export type WireFault =
  | 'refused'
  | 'hangs before'
  | 'hangs after'
  | 'reset before'
  | 'reset after'
  | '503 before'
  | '502 after';

/** A host: answers by calling `answer`, at once or later, or never. */
export interface Host {
  serve(request: WireRequest, answer: (answer: WireAnswer) => void): void;
  /** The fate of the next request; null lets it pass. */
  fault?(request: WireRequest): WireFault | null;
  /** Milliseconds on the way, there and back; 1 to 5 by default. */
  latencyMs?: readonly [from: number, to: number];
}

/** The network that every part of the simulated world hangs on. */
export interface Wire {
  readonly hosts: Map<string, Host>;
  /** Resolves with the answer; rejects as a socket does, or with the signal's reason. */
  send(request: Omit<WireRequest, 'from'>, signal: AbortSignal | undefined): Promise<WireAnswer>;
}

function networkError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

export function createWire(scheduler: Scheduler, random: Random): Wire {
  const hosts = new Map<string, Host>();

  function send(sent: Omit<WireRequest, 'from'>, signal: AbortSignal | undefined): Promise<WireAnswer> {
    const from = currentOwner();
    const request = { ...sent, from };
    const label = `${sent.method} ${sent.origin}${sent.path.split('?', 1)[0]}`;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => reject(signal?.reason);
      signal?.addEventListener('abort', leave, { once: true });
      const back = (ms: number, what: string, end: () => void) =>
        scheduler.after(ms, from, `${what} ${label}`, () => {
          signal?.removeEventListener('abort', leave);
          end();
        });
      const host = hosts.get(sent.origin);
      const [least, most] = host?.latencyMs ?? [1, 5];
      const fault = host ? (host.fault?.(request) ?? null) : 'refused';
      const pause = () => random.between(least, most);
      const fail = (code: string) => back(pause(), 'broken', () => reject(networkError(code)));
      const say = (answer: WireAnswer) => back(pause(), 'answer', () => resolve(answer));
      if (fault === 'refused') return void fail('ECONNREFUSED');
      if (fault === 'hangs before') return;
      if (fault === 'reset before') return void fail('ECONNRESET');
      if (fault === '503 before') return void say({ status: 503, body: 'unavailable' });
      scheduler.after(pause(), WORLD, `arrival ${label}`, () => {
        // What a process had written when it was killed has left the machine, or not.
        if (from.state === 'dead' && random.chance(0.5)) return;
        host?.serve(request, (answer) => {
          if (fault === 'hangs after') return;
          if (fault === 'reset after') fail('ECONNRESET');
          else if (fault === '502 after') say({ status: 502, body: 'bad gateway' });
          else say(answer);
        });
      });
    });
  }

  return { hosts, send };
}
