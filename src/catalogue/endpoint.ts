import type { z } from 'zod';
import type { Unavailable } from '../errors.ts';
import { USDC_DECIMALS } from '../lib/units.ts';

export type Json = Record<string, unknown>;

/** `run` returns the reply or throws an AppError. It cannot know whether it was paid for. */
export interface EndpointSpec<P extends z.ZodObject, R extends z.ZodObject, S> {
  /** Below the prefix of its mount, for example `/fees/estimate`. */
  path: `/${string}`;
  access: 'free' | 'paid';
  /** For a paid endpoint that is sold on one rail alone; `paid` is USDC. */
  onlyOn?: 'paid' | 'lightning';
  /** For paid endpoints: the price in decimal USD, which is written nowhere else. */
  priceUsd?: string;
  label: string;
  summary: string;
  /** What it is asked for by mistake: it completes "Not for …". Models choose tools by such words. Null: nothing. */
  notFor: string | null;
  /** Words that people use for it, searched as sellers' tags are. Null: no search offers it. */
  tags: string | null;
  /** Its data are of the service's chain, which a tool's description then names. */
  ofChain: boolean;
  /** The free route that summarises this endpoint. The 402 hint names it. */
  freeSummary?: `/v1/${string}`;
  params: P;
  result: R;
  example: { params: Record<string, string>; result: z.output<R> };
  /** What its 404 and 502 have beside the members of every problem, where the failure itself tells something. */
  problemMembers?: z.ZodObject;
  /** For free endpoints: how long one answer's bytes and ETag are kept, in ms. */
  cacheMs?: number;
  /** For free endpoints over a store: it changes with every write that may change the answer. */
  version?(sources: S): number;
  /** For free endpoints whose reply can report a fault: it is then sent with 503. None of their replies is cached. */
  reportsFault?(reply: z.output<R>): boolean;
  /** Throws BadParameter for what only the configuration can judge; on priced routes before any payment check. */
  checkParams?(params: z.output<P>, sources: S): void;
  /** For paid endpoints: the 503 where their configuration is missing. Then only payments from before are answered. */
  notConfigured?(sources: S): Unavailable | null;
  run(params: z.output<P>, sources: S, signal: AbortSignal): Promise<z.input<R>>;
}

/** Its types are erased, so that one list can hold all endpoints; `R` is what one that is named answers. */
export interface Endpoint<S, R extends z.ZodObject = z.ZodObject>
  extends Omit<EndpointSpec<z.ZodObject, R, S>, 'priceUsd' | 'run' | 'checkParams' | 'example'> {
  readonly price: Price | null;
  /** The operator does not sell it any more (ROUTES_OFF): only payments from before are answered. */
  readonly isOff?: true;
  readonly example: { params: Record<string, string>; result: Json };
  checkParams(params: unknown, sources: S): void;
  run(params: unknown, sources: S, signal: AbortSignal): Promise<unknown>;
}

/** Throws when a paid endpoint has no price, or a free one has a price. */
export function defineEndpoint<P extends z.ZodObject, R extends z.ZodObject, S>(
  spec: EndpointSpec<P, R, S>,
): Endpoint<S, R> {
  if ((spec.access === 'paid') !== (spec.priceUsd !== undefined)) {
    throw new Error(`${spec.access} endpoint ${spec.path}: a price belongs to paid endpoints, and to all of them`);
  }
  const { priceUsd, run, checkParams, ...rest } = spec;
  return Object.freeze({
    ...rest,
    example: spec.example as Endpoint<S>['example'],
    price: priceUsd === undefined ? null : priceFromUsd(priceUsd),
    checkParams: (params: unknown, sources: S) => checkParams?.(params as z.output<P>, sources),
    // Callers pass only what `params` has parsed.
    run: (params: unknown, sources: S, signal: AbortSignal) => run(params as z.output<P>, sources, signal),
  });
}

export interface Price {
  readonly usd: string;
  /** In USDC base units (6 decimals): 0.001 USD is 1000n. */
  readonly units: bigint;
}

/** Reads decimal USD without floating point. Throws when the value is not exactly representable. */
export function priceFromUsd(usd: string): Price {
  const match = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(usd);
  if (!match) throw new Error(`not a USD price with at most ${USDC_DECIMALS} decimals: ${usd}`);
  const units = BigInt(`${match[1]}${(match[2] ?? '').padEnd(USDC_DECIMALS, '0')}`);
  if (units === 0n) throw new Error('a price must be more than 0');
  return Object.freeze({ usd, units });
}
