import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams, type Query } from '../catalogue/params.ts';
import { listedPath } from '../catalogue/paths.ts';
import { AppError, BadParameter, NotFound, type ParameterError, Unavailable, UpstreamFailed } from '../errors.ts';
import type { Ask, Call, RunFor, Sold } from './call.ts';
import type { Accepted, Credential, Demand, Receipt, WriteDemand } from './protocol.ts';
import type { Rail, UsdcCall } from './rail.ts';
import { corrected, type PaymentRefused, type RefusalWords } from './refusal.ts';

// A checkout sells one endpoint on one surface, to routes and to tools: it reads the request, names the price, and
// hands the payment to a rail. This file has the checkout of terms that are known before a request; the one whose price
// is quoted for each call is the Lightning rail's. Below it a priced endpoint runs, here alone: it gets its parameters
// and a signal, and cannot know who pays.

/** `C`: a request as this checkout has read it. `D`: what must be paid: a 402, or the entries of a tool's `accepts`. */
export interface Checkout<C, D> {
  /** Checks what must be right before the client is asked to pay. Throws BadParameter. */
  read(ask: Ask): C;
  /** Returns what the client must pay. Throws when the call cannot be sold now. */
  demand(call: C, error?: string): D | Promise<D>;
  /** Throws PaymentRefused (402), or an AppError that says whether money moved. */
  sell(call: C, credential: Credential): Promise<Sold>;
  /** As `demand`, after a refusal. Throws when no offer can be made and `needsOffer`. */
  demandAgain(call: C, refusal: PaymentRefused, needsOffer: boolean): D | Promise<D>;
  /** The receipt of a refusal: why a settlement was refused, or a sale that the buyer missed. Null: none is due. */
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
}

/** How the endpoints run: their sources for a sale, and for an unpaid offer at each of its ranks. */
export interface Running<S> {
  readonly sources: Readonly<Record<RunFor, S>>;
  readonly handlerTimeoutMs: number;
}

/** Joins a request and its endpoint: the one place that knows both the sources of an answer and who pays for it. */
export function callOf<S>(
  endpoint: Endpoint<S>,
  route: string,
  ask: Ask,
  { sources, handlerTimeoutMs: timeoutMs }: Running<S>,
): Call {
  let parsed: { readonly params: unknown } | null = null;
  const params = (): unknown => {
    if (parsed) return parsed.params;
    const read = parseParams(endpoint, ask.query);
    endpoint.checkParams(read, sources.sale);
    parsed = { params: read };
    return read;
  };
  return {
    target: ask.target,
    endpoint,
    route,
    price: endpoint.price?.units ?? 0n,
    client: ask.client(),
    identity: ask.identity(),
    signal: ask.signal(),
    params,
    run: (what, signal) => runEndpoint(endpoint, params(), { sources: sources[what], timeoutMs, signal }),
  };
}

/** What an endpoint costs in USDC, prepared at start: a 402 takes little more work than sending its bytes. */
export interface Offer {
  /** The plain requirement. Each rail makes its entry from it. */
  readonly requirement: PaymentRequirements;
  /** Every way to pay in USDC, the plain one first. */
  readonly accepts: readonly PaymentRequirements[];
  readonly demand: WriteDemand;
}

/** Why a demand is made: nothing was paid, or a payment was refused. */
interface DemandReason {
  readonly error?: string | undefined;
  /** The refusal in words; null where nothing was paid. */
  readonly refusal: string | null;
  /** Other entries than the offer's, for one buyer. */
  readonly entries?: readonly PaymentRequirements[] | undefined;
}

/** Writes an offer as its surface says it. */
type WriteOffer<D> = (offer: Offer, ask: Ask, reason: DemandReason) => D;

export type RailFor = (accepted: Accepted) => Rail<UsdcCall>;

interface UsdcCheckoutOptions<S, D> {
  /** The terms of now. */
  offer(): Offer;
  /** The rail that recognises a payment's terms; else the first, whose checks say what is wrong with them. */
  readonly railFor: RailFor;
  readonly write: WriteOffer<D>;
  readonly running: Running<S>;
  readonly words: RefusalWords;
}

/** A request gets the price whatever its parameters are: they are read with the payment. */
export function createUsdcCheckout<S, D>(endpoint: Endpoint<S>, options: UsdcCheckoutOptions<S, D>): Checkout<Ask, D> {
  const { offer, railFor, write, running, words } = options;
  const route = listedPath(endpoint);
  return {
    read: (ask) => ask,
    demand: (ask, error) => write(offer(), ask, { error, refusal: null }),
    sell: (ask, credential) => {
      const plain = offer().requirement;
      const call: UsdcCall = { ...callOf(endpoint, route, ask, running), plain };
      return railFor(credential.accepted ?? plain).sell(call, credential);
    },
    demandAgain: (ask, refusal) => {
      const { reason: error, correction } = refusal;
      const now = offer();
      const entries = correction ? corrected(now.accepts, correction) : undefined;
      return write(now, ask, { error, refusal: words(refusal), entries });
    },
    refusalReceipt: ({ settlement }) => settlement,
  };
}

/** The USDC part of a tool's `accepts`. A tool reads its arguments before it asks, so no fault stands beside it. */
export const acceptsOf: WriteOffer<readonly PaymentRequirements[]> = ({ accepts }, _ask, { entries = accepts }) =>
  entries;

/** A 402 over HTTP, with the faults of the parameters: no client signs before it hears of one. */
export function http402<S>(endpoint: Endpoint<S>, sources: S): WriteOffer<Demand> {
  const faultOf = createFaultFinder(endpoint, sources);
  return ({ accepts, demand }, { target, query }, { error, refusal, entries }) => {
    if (target.kind !== 'http') throw new Error('a tool has no 402');
    // A 402 that offers nothing is no demand: the rails that sell this route are not proven yet.
    if (refusal === null && accepts.length === 0)
      throw new Unavailable('settlement_unavailable', 'no way to pay for this can be offered now');
    return demand({ method: target.method, target: target.url, refusal, fault: faultOf(query) }, error, entries);
  };
}

// Null when nothing is wrong, or cannot be said now. A request without parameters is judged once, when one comes.
function createFaultFinder<S>(endpoint: Endpoint<S>, sources: S): (query: Query) => string | null {
  let without: string | null | undefined;
  return (query) => {
    for (const _name in query) return faultOf(endpoint, query, sources);
    if (without === undefined) without = faultOf(endpoint, {}, sources);
    return without;
  };
}

/** What is wrong with a request's parameters, for people. */
export function faultOf<S>(endpoint: Endpoint<S>, query: Query, sources: S): string | null {
  try {
    endpoint.checkParams(parseParams(endpoint, query), sources);
    return null;
  } catch (error) {
    return error instanceof BadParameter ? error.errors.map(inWords).join('; ') : null;
  }
}

/** A message that says of a parameter that it is not there, such as `required: a host name`. */
const ABSENT = /^(?:missing|required)\b/;

function inWords({ path, message }: ParameterError): string {
  return ABSENT.test(message) ? message.replace(ABSENT, `${path} is missing`) : `${path}: ${message}`;
}

const NOT_SOLD =
  'This route is not sold here. GET /v1/paid lists those that are sold in USDC, GET /v1/lightning those in bitcoin.';

/** Of a route that is not sold any more: `refusal`, by default 404. Payments from before still get their answer. */
export function onlyKnown<C, D>(
  checkout: Checkout<C, D>,
  refusal: () => AppError = () => new NotFound(NOT_SOLD, 'no_such_route'),
): Checkout<Ask, D> {
  const refuse = (): never => {
    throw refusal();
  };
  return {
    // What cannot be sold need not be read.
    read: (ask) => ask,
    sell: (ask, credential) => checkout.sell(checkout.read(ask), credential),
    demand: refuse,
    refusalReceipt: checkout.refusalReceipt,
    demandAgain: refuse,
  };
}

interface RunContext<S> {
  readonly sources: S;
  readonly timeoutMs: number;
  /** Aborts when the buyer's connection closes. */
  readonly signal: AbortSignal;
}

/** A reply that fails its schema is never sold. Throws the endpoint's errors, UpstreamFailed (time-out), 499 (left). */
export async function runEndpoint<S>(endpoint: Endpoint<S>, params: unknown, context: RunContext<S>): Promise<Buffer> {
  const { sources, timeoutMs, signal } = context;
  const reply = await within(timeoutMs, signal, (deadline) => endpoint.run(params, sources, deadline));
  const parsed = endpoint.result.safeParse(reply);
  if (!parsed.success)
    throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
  return Buffer.from(JSON.stringify(parsed.data), 'utf8');
}

/** Rejects, and aborts the work's signal, when the connection closes or the time is over. Leaves no timer behind. */
async function within<T>(ms: number, signal: AbortSignal, work: (deadline: AbortSignal) => Promise<T>): Promise<T> {
  const control = new AbortController();
  const stop = Promise.withResolvers<never>();
  const end = (error: Error, reason: unknown) => {
    stop.reject(error);
    control.abort(reason);
  };
  const leave = () => end(clientGone(), signal.reason);
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  const timer = setTimeout(() => {
    const late = new UpstreamFailed('endpoint', 'no answer in time');
    end(late, late);
  }, ms);
  try {
    return await Promise.race([work(control.signal), stop.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

/** 499 is nginx's status for a client that has left. The client never receives it. */
export function clientGone(): AppError {
  return new AppError(499, 'client_gone', 'the client closed the connection before the answer was ready');
}
