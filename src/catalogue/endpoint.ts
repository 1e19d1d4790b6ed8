import type { z } from 'zod';
import type { Unavailable } from '../errors.ts';
import { type Price, priceFromUsd } from './price.ts';

type Json = Record<string, unknown>;

/**
 * One endpoint, free or priced, as its author declares it.
 * `run` gets parsed parameters. It returns the reply or throws an AppError. It cannot know whether the call was paid for.
 */
export interface EndpointSpec<P extends z.ZodObject, R extends z.ZodObject, S> {
  /** Path below `/v1` (free), or below `/v1/paid` and `/v1/lightning` (priced), for example `/fees/estimate`. */
  path: `/${string}`;
  access: 'free' | 'paid';
  /** For a paid endpoint that is sold on one rail alone. `paid` is USDC. */
  onlyOn?: 'paid' | 'lightning';
  /** The price in decimal USD; for paid endpoints only. The price is written nowhere else. */
  priceUsd?: string;
  /** A few words for lists and menus. */
  label: string;
  /** One sentence that says what the answer holds. OpenAPI, the 402 hint and the price list show it. */
  summary: string;
  /** The free route that summarises this endpoint. The 402 hint names it. */
  freeSummary?: `/v1/${string}`;
  params: P;
  result: R;
  example: { params: Record<string, string>; result: z.output<R> };
  /** The members that its 404 and 502 have beside those of every problem, where the failure itself tells something. */
  problemMembers?: z.ZodObject;
  /** For free endpoints: how long one answer's bytes and ETag are kept, in ms. */
  cacheMs?: number;
  /**
   * For free endpoints over a store: a number that changes with every write that may change the answer. Answer bytes are kept until it changes, and
   * at most for `cacheMs`.
   */
  version?(sources: S): number;
  /** For free endpoints whose reply can report a fault. Such a reply is sent with 503. No reply of such an endpoint is cached. */
  reportsFault?(reply: z.output<R>): boolean;
  /** Checks parameters that only the configuration can judge; throws BadParameter. On priced routes it runs before every payment check. */
  checkParams?(params: z.output<P>, sources: S): void;
  /**
   * For paid endpoints: the 503 where the configuration lacks what it reads, else null. Its route then answers nothing else but payments from before,
   * and no list names it.
   */
  notConfigured?(sources: S): Unavailable | null;
  run(params: z.output<P>, sources: S, signal: AbortSignal): Promise<z.input<R>>;
}

/** A declared endpoint with its types erased, so that one list can hold all of them. */
export interface Endpoint<S>
  extends Omit<EndpointSpec<z.ZodObject, z.ZodObject, S>, 'priceUsd' | 'run' | 'checkParams' | 'example'> {
  readonly price: Price | null;
  /** Whether the operator does not sell it any more (ROUTES_OFF). Only payments from before are answered. */
  readonly isOff?: true;
  readonly example: { params: Record<string, string>; result: Json };
  checkParams(params: unknown, sources: S): void;
  run(params: unknown, sources: S, signal: AbortSignal): Promise<unknown>;
}

/**
 * Declares an endpoint. Every catalogue entry is made here.
 * Throws when a paid endpoint has no price, or when a free one has a price.
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
    // The gate and the free routes pass only what `params` itself has parsed.
    run: (params: unknown, sources: S, signal: AbortSignal) => run(params as z.output<P>, sources, signal),
  });
}
