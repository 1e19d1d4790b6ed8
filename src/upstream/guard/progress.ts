import { performance } from 'node:perf_hooks';

/** The steps of one hop, in their order. `request` lasts from the request to the headers of its answer. */
export type Phase = 'dns' | 'connect' | 'tls' | 'request';

/** One redirect that was followed. */
export interface Hop {
  readonly url: string;
  readonly status: number;
  readonly latencyMs: number;
}

/** Facts about the server's TLS. Texts are the server's own, cut to a length. */
export interface TlsFacts {
  readonly protocol: string;
  readonly issuer: string | null;
  readonly subject: string | null;
  /** Unix seconds. */
  readonly validFrom: number | null;
  /** Unix seconds. */
  readonly validTo: number | null;
}

/** What a visit reached before it failed. */
export interface Reached {
  /** The hop that failed. */
  readonly url: string;
  /** The step during which it failed; null when it failed between two hops. */
  readonly phase: Phase | null;
  /** Milliseconds of each step of that hop; the last one until the failure, null for one that was not reached or not needed. */
  readonly phaseMs: Readonly<Record<Phase, number | null>>;
  readonly hops: readonly Hop[];
  /** Since the first look-up, redirects included. */
  readonly totalMs: number;
  readonly tls: TlsFacts | null;
  /** OpenSSL's name of what is wrong with the certificate; null when nothing is, or when it was not seen. */
  readonly certificateFault: string | null;
}

/**
 * Notes how far a visit gets. A visit that runs out of time is abandoned at the deadline and can say nothing any more, so it says it while it goes on.
 */
export interface Progress {
  /** A hop begins; facts about the hop before it are dropped. */
  startHop(url: string): void;
  enter(phase: Phase): void;
  /** The hop has answered. */
  answered(): void;
  followed(hop: Hop): void;
  secured(tls: TlsFacts, certificateFault: string | null): void;
  /** What was reached by now. */
  reached(): Reached;
}

export function createProgress(start: string): Progress {
  let startedMs: number | null = null;
  const hops: Hop[] = [];
  let url = start;
  let entered: { phase: Phase; atMs: number }[] = [];
  let answeredMs: number | null = null;
  let tls: TlsFacts | null = null;
  let certificateFault: string | null = null;
  return {
    startHop(next) {
      url = next;
      startedMs ??= performance.now();
      entered = [];
      answeredMs = null;
      tls = null;
      certificateFault = null;
    },
    enter(phase) {
      entered.push({ phase, atMs: performance.now() });
    },
    answered() {
      answeredMs = performance.now();
    },
    followed(hop) {
      hops.push(hop);
    },
    secured(facts, fault) {
      tls = facts;
      certificateFault = fault;
    },
    reached() {
      const nowMs = performance.now();
      const phaseMs: Record<Phase, number | null> = { dns: null, connect: null, tls: null, request: null };
      for (const [index, { phase, atMs }] of entered.entries())
        phaseMs[phase] = (entered[index + 1]?.atMs ?? answeredMs ?? nowMs) - atMs;
      const phase = answeredMs === null ? (entered.at(-1)?.phase ?? null) : null;
      return { url, phase, phaseMs, hops: [...hops], totalMs: nowMs - (startedMs ?? nowMs), tls, certificateFault };
    },
  };
}
