import type { FastifyInstance, RouteHandlerMethod, RouteOptions } from 'fastify';
import { z } from 'zod';
import { sourceSchema } from '../../lib/service.ts';

// What a route that is no catalogue entry says of itself, beside its handler: the OpenAPI document is made of that.

declare module 'fastify' {
  interface FastifyContextConfig {
    /** By it the document knows what is mounted. */
    declared?: Route;
  }
}

/** What a route answers with one status. */
export interface Answered<S extends z.ZodType = z.ZodType> {
  readonly description: string;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  /** Absent: no body. */
  readonly type?:
    | 'application/json'
    | 'application/problem+json'
    | 'application/linkset+json'
    | 'text/plain'
    | 'text/markdown';
  readonly schema?: S;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  /** As Fastify takes it: `/v1/payments/:id`. */
  readonly url: `/${string}`;
  /** The operation's id. Generated clients and links rely on it. */
  readonly id: string;
  readonly tag: 'market' | 'facilitator' | 'meta';
  readonly summary: string;
  readonly description: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  readonly answers: Readonly<Record<number, Answered>>;
}

/** What `onRoute` has seen. It is complete once the application is ready. */
export interface Mounted {
  readonly mounted: readonly Pick<RouteOptions, 'url' | 'config'>[];
}

export function defineRoute<R extends Omit<Route, 'method' | 'url'>, M extends Route['method'], U extends Route['url']>(
  method: M,
  url: U,
  route: R,
) {
  return Object.freeze({ method, url, ...route });
}

type Served = Pick<RouteOptions, 'handler'> & Partial<Pick<RouteOptions, 'onRequest' | 'bodyLimit'>>;

/** Mounts a declared route; one of GET answers HEAD too. No schema goes to Fastify, which would compile it. */
export function serve(app: FastifyInstance, route: Route, served: RouteHandlerMethod | Served): void {
  const options = typeof served === 'function' ? { handler: served } : served;
  const method = route.method === 'GET' ? ['GET' as const, 'HEAD' as const] : route.method;
  app.route({ method, url: route.url, config: { declared: route }, ...options });
}

/** Schemas that the document describes once, by name. */
export const COMPONENTS = z.registry<{ readonly name: string }>();

const PROBLEM_EXAMPLE = {
  type: 'about:blank',
  title: 'Bad Request',
  status: 400,
  detail: 'gas: a whole number from 1 to 30000000',
  instance: '/v1/fees/estimate',
  code: 'bad_parameter',
  charged: false,
  requestId: 'Qm9vdFByZWZpeA-2s',
  errors: [{ path: 'gas', message: 'a whole number from 1 to 30000000' }],
};

export const PROBLEM = z
  .object({
    type: z.string(),
    title: z.string().meta({ description: 'The status in words' }),
    status: z.int(),
    detail: z.string().meta({ description: 'What the caller can do about it' }),
    instance: z.string().meta({ description: 'The path of the request' }),
    code: z.string().meta({ description: 'Stable, in snake_case; meant for programs' }),
    charged: z.union([z.boolean(), z.literal('unknown')]).meta({
      description:
        'false: no money moved or will move. true: the payment was taken, and its answer is no longer kept. ' +
        '"unknown": a settlement has no final answer yet, or the payment was not looked at; present the same one ' +
        'again',
    }),
    requestId: z.string().meta({ description: 'The same as X-Request-Id' }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .meta({ description: 'Each parameter at fault' }),
  })
  .meta({ description: 'RFC 9457 problem details; routes may add members', examples: [PROBLEM_EXAMPLE] });
COMPONENTS.add(PROBLEM, { name: 'Problem' });
COMPONENTS.add(sourceSchema, { name: 'Source' });

export const inJson = <S extends z.ZodType>(schema: S, description: string) =>
  ({ description, type: 'application/json' as const, schema }) satisfies Answered<S>;

export const problem = (description: string) =>
  ({ description, type: 'application/problem+json' as const, schema: PROBLEM }) satisfies Answered;

/** A member with a sentence on it. */
export const said = (description: string) => z.string().meta({ description });
export const saidOrNull = (description: string) => z.string().nullable().meta({ description });
export const whole = (description: string) => z.int().meta({ description });
export const wholeOrNull = (description: string) => z.int().nullable().meta({ description });
export const count = (description: string) => z.int().min(0).meta({ description });
/** An object of any members. */
export const anyMembers = z.looseObject({});
/** A whole number that is always this one. */
export const always = (value: number) => z.int().meta({ enum: [value] });
