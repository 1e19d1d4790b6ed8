import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import { runEndpoint } from '../payment/run-endpoint.ts';

interface Freshness {
  readonly head: number | null;
  readonly collected: number | null;
  readonly lagBlocks: number | null;
  readonly lagSeconds: number | null;
}

/** One self-test run. Times in Unix seconds. */
export interface SelfTestRun {
  readonly at: number;
  readonly ok: boolean;
  readonly latencyMs: number | null;
  readonly transaction: string | null;
  readonly notCharged: boolean | null;
  readonly reason: string | null;
}

/** The parts of the free routes' answers that pages show, by path below `/v1`. Each endpoint declares its whole answer. */
export interface Answers {
  readonly '/fees': {
    readonly baseFee: { readonly gwei: string; readonly block: number };
    readonly nextBaseFee: { readonly gwei: string } | null;
    readonly transferCostUsdc: { readonly erc20: string };
    readonly hours: readonly { readonly minGwei: string; readonly maxGwei: string }[];
  };
  /** Shown whole, as an example of a free answer. */
  readonly '/fees/estimate': {
    readonly detail?: { readonly priceUsd: string; readonly adds: string } | null;
  };
  readonly '/rpc': {
    readonly endpoints: readonly {
      readonly name: string;
      readonly latencyMs: number | null;
      readonly headLagBlocks: number | null;
      readonly ok: boolean | null;
      readonly checkedAt: number | null;
    }[];
  };
  readonly '/health': {
    readonly status: 'ok' | 'stalled' | 'lagging';
    readonly thresholds: Readonly<Record<'stalledSeconds' | 'lagBlocks' | 'lagSeconds', number>>;
    readonly readings: Readonly<
      Record<'headMovedSecondsAgo' | 'headCheckedSecondsAgo' | 'lagBlocks' | 'lagSeconds', number | null>
    > & { readonly windowCollected: number };
    readonly freshness: Freshness;
  };
  readonly '/selftest': {
    readonly note: string;
    readonly last24h: { readonly runs: number; readonly ok: number };
    readonly recent: readonly SelfTestRun[];
  };
}

/** Returns a free route's current answer. Null when the route fails, so that a page can show the rest. */
export type ReadAnswer = <P extends keyof Answers>(path: P) => Promise<Answers[P] | null>;

interface AnswersDeps<S> {
  readonly config: { readonly handlerTimeoutMs: number };
  readonly catalogue: readonly Endpoint<S>[];
  readonly sources: S;
  readonly log: { warn(fields: object, message: string): void };
}

/** Runs free endpoints for pages, with default parameters. So a page and the API show the same data. */
export function createReadAnswer<S>({ config, catalogue, sources, log }: AnswersDeps<S>): ReadAnswer {
  const context = { sources, timeoutMs: config.handlerTimeoutMs, signal: new AbortController().signal };
  return async (path) => {
    const endpoint = catalogue.find((entry) => entry.access === 'free' && entry.path === path);
    if (endpoint === undefined) return null;
    try {
      // `runEndpoint` checked it against the endpoint's schema.
      return JSON.parse((await runEndpoint(endpoint, parseParams(endpoint, {}), context)).toString('utf8'));
    } catch (error) {
      log.warn({ path, err: error }, 'a page is shown without the answer of a route');
      return null;
    }
  };
}
