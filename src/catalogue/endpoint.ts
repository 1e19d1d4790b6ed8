import type { z } from 'zod';
import { type Price, priceFromUsd } from './price.ts';

type Json = Record<string, unknown>;

/**
 * One thing that we sell or give away, as its author writes it.
 * `run` gets parsed parameters and returns the reply or throws an AppError; it is never told whether it was paid for.
 */
export interface EndpointSpec<P extends z.ZodObject, R extends z.ZodObject, S> {
  /** Below `/v1` (free), or `/v1/paid` and `/v1/lightning` (paid), for example `/fees/estimate`. */
  path: `/${string}`;
  access: 'free' | 'paid';
  /** Paid endpoints that are sold on one rail alone: `paid` is USDC. */
  onlyOn?: 'paid' | 'lightning';
  /** Paid endpoints only: decimal USD, the one place where the price is written. */
  priceUsd?: string;
  /** A few words for lists and menus. */
  label: string;
  /** One sentence: what the answer holds. Served in OpenAPI, the 402 hint and the price list. */
  summary: string;
  /** The free route that summarises this one, named in the 402 hint. */
  freeSummary?: `/v1/${string}`;
  params: P;
  result: R;
  example: { params: Record<string, string>; result: z.output<R> };
  /** Free endpoints: how long one answer's bytes and ETag are kept. */
  cacheMs?: number;
  /** Free endpoints over a store: differs after every write that may change the answer; bytes are kept until then, and at most for `cacheMs`. */
  version?(sources: S): number;
  /** Free endpoints whose reply can itself be bad news: then it is sent with 503. Such an endpoint's replies are never kept. */
  isBadNews?(reply: z.output<R>): boolean;
  /** Judges parameters by what only the configuration knows; throws BadParameter. On priced routes it comes before any payment check. */
  checkParams?(params: z.output<P>, sources: S): void;
  run(params: z.output<P>, sources: S, signal: AbortSignal): Promise<z.input<R>>;
}

/** A declared endpoint with its types erased, so that many stand in one list. */
export interface Endpoint<S>
  extends Omit<EndpointSpec<z.ZodObject, z.ZodObject, S>, 'priceUsd' | 'run' | 'checkParams' | 'example'> {
  readonly price: Price | null;
  readonly example: { params: Record<string, string>; result: Json };
  checkParams(params: unknown, sources: S): void;
  run(params: unknown, sources: S, signal: AbortSignal): Promise<unknown>;
}

/**
 * Declares an endpoint; the one way onto the catalogue.
 * Throws when a paid endpoint has no price or a free one has, so that neither can be mounted by mistake.
 */
export function defineEndpoint<P extends z.ZodObject, R extends z.ZodObject, S>(
  spec: EndpointSpec<P, R, S>,
): Endpoint<S> {
  if ((spec.access === 'paid') !== (spec.priceUsd !== undefined)) {
    throw new Error(`${spec.access} endpoint ${spec.path}: a price belongs to paid endpoints, and to all of them`);
  }
  const { priceUsd, run, checkParams, ...rest } = spec;
  return Object.freeze({
    ...rest,
    example: spec.example as Endpoint<S>['example'],
    price: priceUsd === undefined ? null : priceFromUsd(priceUsd),
    checkParams: (params: unknown, sources: S) => checkParams?.(params as z.output<P>, sources),
    // The gate and the free routes only ever pass what `params` itself has parsed.
    run: (params: unknown, sources: S, signal: AbortSignal) => run(params as z.output<P>, sources, signal),
  });
}
