import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Market } from '../discovery/market/market.ts';
import type { Facilitator } from '../facilitator/facilitator.ts';
import type { Clock } from '../lib/clock.ts';
import type { ReadAnswer } from './answers.ts';
import type { ChartSource } from './charts/series.ts';
import type { SettledSource } from './settled-today.ts';

/** How one part of the service stands, in its own words. */
interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/** What pages are made from. */
export interface PagesDeps<S> {
  readonly config: {
    readonly publicOrigin: string;
    readonly handlerTimeoutMs: number;
    readonly network: { readonly caip2: string; readonly usdc: string; readonly explorerUrl: string | null };
  };
  readonly catalogue: readonly Endpoint<S>[];
  readonly sources: S;
  readonly clock: Clock;
  readonly log: { warn(fields: object, message: string): void };
  readonly discovery: Pick<Discovery, 'search'>;
  readonly market: Pick<Market, 'all'>;
  readonly facilitator: Pick<Facilitator, 'descriptor'>;
  readonly charts: ChartSource;
  readonly settled: SettledSource;
  /** Of the node that receives bitcoin, which is no part of readiness: USDC can be taken without it. */
  lightning(): Check;
  /** Whether paid calls can be served now, and what stands in the way. */
  readiness(): Promise<{
    readonly checks: Readonly<Record<string, Check>>;
  }>;
}

/** The same as the single pages see it: answers of the free routes instead of what those are made from. */
export interface PageParts extends Omit<PagesDeps<never>, 'sources' | 'log'> {
  readonly read: ReadAnswer;
}
