import type { Answers } from '../catalogue/catalogue.ts';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Market } from '../discovery/market.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import type { Outcome } from '../lib/outcomes.ts';
import type { NamedChain } from '../lib/service.ts';
import { runEndpoint } from '../payment/checkout.ts';
import type { RefusalCounts, SettledSource } from '../payment/history.ts';
import type { DemoBuyer } from './demo-buyer.ts';
import type { SiteSettings } from './shell.ts';

// What pages are made of: their dependencies, and the free answers that they show.

export interface PagesNetwork extends NamedChain {
  readonly caip2: string;
  readonly usdc: string;
  readonly chainId: number;
  readonly explorerUrl: string | null;
  readonly getUsdcUrl: string | null;
  readonly walletRpcUrls: readonly string[];
}

export interface PagesDeps<S> {
  readonly config: SiteSettings & {
    readonly handlerTimeoutMs: number;
    readonly network: PagesNetwork;
    /** Whether the USDC routes stand under `/v1/mpp` too. */
    readonly protocols: { readonly mpp: boolean };
    /** `gateway`: null where it is not offered. `exactFrom`: the least price of a plain payment; null: none. */
    readonly rails: { readonly gateway: unknown; readonly exactFrom: bigint | null };
    readonly seller: string;
    readonly trustedProxies: readonly string[];
  };
  /** The buyer of a demo, whom pages on this machine may pay with; null where money is real. */
  readonly demoBuyer: DemoBuyer | null;
  readonly catalogue: readonly Endpoint<S>[];
  readonly sources: S;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  readonly discovery: Pick<Discovery, 'searchPage'>;
  readonly market: Pick<Market, 'all'>;
  readonly facilitator: Pick<Facilitator, 'descriptor'>;
  readonly charts: ChartSource;
  readonly settled: SettledSource;
  /** The way to pay whose payers sign for a contract. */
  readonly settledOn: (contract: Uint8Array) => string;
  /** Refused calls, and what a buyer is told for a code. Null where nothing of earlier days is shown. */
  readonly refused: (Pick<RefusalCounts, 'read'> & { sentenceOf(code: string): string | undefined }) | null;
  readonly readiness: {
    (): Promise<{
      /** The checks for which paid calls cannot be served now. */
      readonly failing: readonly string[];
      /** The checks of further ways to pay in USDC. */
      readonly ways: readonly string[];
      readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail?: string }>>;
    }>;
    /** When a check held and failed last in this process; null before it was read. */
    outcomeOf(name: string): Outcome | null;
  };
  /** When each source of public data answered and failed last in this process. */
  upstreams(): readonly Outcome[];
}

export interface ChartSource {
  /** Base fees in wei since `from` (Unix seconds), oldest first, in spans of `stepSeconds`. */
  feeSteps(
    from: number,
    stepSeconds: number,
  ): readonly ({ readonly at: number } & Readonly<Record<'minBaseFee' | 'avgBaseFee' | 'maxBaseFee', bigint>>)[];
  /** Probe results since `sinceMs` (Unix milliseconds), oldest first. No latency: it did not answer. */
  probes(endpoint: string, sinceMs: number): readonly { readonly atMs: number; readonly latencyMs: number | null }[];
}

/** What one page gets: `read` in place of the sources. */
export interface PageParts extends Omit<PagesDeps<never>, 'sources' | 'log'> {
  readonly read: ReadAnswer;
  /** When this process began to serve pages, in Unix milliseconds. */
  readonly startedAtMs: number;
}

/** Null when the route fails, so that a page can show the rest. */
type ReadAnswer = <P extends keyof Answers>(path: P) => Promise<Answers[P] | null>;

type AnswersDeps<S> = Pick<PagesDeps<S>, 'catalogue' | 'sources' | 'log'> & {
  readonly config: Pick<PagesDeps<S>['config'], 'handlerTimeoutMs'>;
};

/** Runs free endpoints with default parameters, so that a page and the API show the same data. */
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
