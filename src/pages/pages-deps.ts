import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Market } from '../discovery/market.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import type { Outcome } from '../lib/outcomes.ts';
import type { NamedChain } from '../lib/service.ts';
import type { RailSum, SettledSource } from '../payment/settled-today.ts';
import type { ReadAnswer } from './answers.ts';
import type { ChartSource } from './charts/series.ts';
import type { DemoBuyer } from './demo-buyer.ts';
import type { Document } from './reference/read-document.ts';
import type { SiteSettings } from './site.ts';

/** The state of one part of the service, with its own description. */
interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/** The chain as pages describe it: for wallets, and for links to an explorer. */
export interface PagesNetwork extends NamedChain {
  readonly caip2: string;
  readonly usdc: string;
  readonly chainId: number;
  readonly explorerUrl: string | null;
  readonly getUsdcUrl: string | null;
  readonly walletRpcUrls: readonly string[];
}

/** The dependencies of the pages. */
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
  /** Signs for the buyer of a demo, whom pages on this machine may pay with; null where money is real. */
  readonly demoBuyer: DemoBuyer | null;
  /** The OpenAPI document, which the reference shows. It is made at the first request. */
  document(): Promise<Document>;
  readonly catalogue: readonly Endpoint<S>[];
  readonly sources: S;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  readonly discovery: Pick<Discovery, 'searchPage'>;
  readonly market: Pick<Market, 'all'>;
  readonly facilitator: Pick<Facilitator, 'descriptor'>;
  readonly charts: ChartSource;
  readonly settled: SettledSource;
  /** The rail whose payers sign for a contract. */
  readonly settledOn: (contract: Uint8Array) => RailSum['rail'];
  /** The checks; the names of those for which paid calls cannot be served now; the names of further ways to pay in USDC. */
  readonly readiness: {
    (): Promise<{
      readonly failing: readonly string[];
      readonly ways: readonly string[];
      readonly checks: Readonly<Record<string, Check>>;
    }>;
    /** When a check held and failed last in this process; null before it was read. */
    outcomeOf(name: string): Outcome | null;
  };
  /** When each source of public data answered and failed last in this process. */
  upstreams(): readonly Outcome[];
}

/** The same for a single page, with `read` instead of the sources. */
export interface PageParts extends Omit<PagesDeps<never>, 'sources' | 'log'> {
  readonly read: ReadAnswer;
  /** When this process began to serve pages, in Unix milliseconds. */
  readonly startedAtMs: number;
}
