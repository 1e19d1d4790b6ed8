import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest, preHandlerHookHandler, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { API_CATALOG_LINK } from '../catalogue/paths.ts';
import type { Log } from '../lib/common.ts';
import { clientKey, identityOf } from '../lib/limits/count.ts';
import type { Ask, Sold } from './call.ts';
import { type Checkout, clientGone } from './checkout.ts';
import type { Credential, Demand, Fields, HttpProtocol, RequestMessage } from './protocol.ts';
import { AnswerGone } from './receipt.ts';
import { asChargedUnknown, PaymentRefused } from './refusal.ts';

// The HTTP end of a sale. A priced route is mounted with a gate and a handler that throws, so no request reaches an
// endpoint past its checkout.

interface GateOptions<S> {
  checkoutOf(endpoint: Endpoint<S>): Checkout<unknown, Demand>;
  protocol: HttpProtocol;
  log: Pick<Log, 'error'>;
  /** Told of each presented payment that gets no answer. */
  onRefused?(error: unknown): void;
  /** Absent: every demand goes out as its protocol writes it. */
  pageOf?(endpoint: Endpoint<S>): UnpaidPage;
}

/** What sends an unpaid demand as a page: status and header fields are set. Null: the request asks for no page. */
export type UnpaidPage = (request: FastifyRequest, demand: Demand) => ((reply: FastifyReply) => void) | null;

interface GatedRoute {
  readonly preHandler: preHandlerHookHandler;
  readonly handler: RouteHandlerMethod;
}

/** `guard` makes the preHandler of one route: a gate that matched paths could be bypassed by another spelling. */
export function createGate<S>({ checkoutOf, protocol, log, onRefused, pageOf }: GateOptions<S>) {
  const gates = new WeakSet<object>();

  /** The receipt of a payment that was taken: where it cannot be written, the error says `charged: "unknown"`. */
  function write(...receipt: Parameters<HttpProtocol['receipt']>): Fields {
    try {
      return protocol.receipt(...receipt);
    } catch (error) {
      throw asChargedUnknown(error);
    }
  }

  function guard(endpoint: Endpoint<S>): GatedRoute {
    const checkout = checkoutOf(endpoint);
    const page = pageOf?.(endpoint);

    /** Synchronous where the demand is prepared, so that an unpaid request creates no promise. */
    function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> | void {
      const call = checkout.read(askOf(request, reply));
      // A request without a payment, and every HEAD, gets a 402 that says what to pay.
      const message = request.raw;
      if (request.method === 'HEAD' || !protocol.carries(message)) {
        const demand = checkout.demand(call, protocol.unpaidReason(message));
        if (!(demand instanceof Promise)) return sendUnpaid(request, reply, demand, page);
        return demand.then((made) => sendUnpaid(request, reply, made, page));
      }
      return sell(call, message, reply);
    }

    async function sell(call: unknown, message: RequestMessage, reply: FastifyReply): Promise<void> {
      let credential: Credential | null = null;
      try {
        credential = protocol.read(message);
        const sold = await checkout.sell(call, credential);
        setFields(reply, write(sold.receipt, credential, sold.at));
        noteDelivery(reply, sold, log);
        send200(reply, sold.body);
      } catch (error) {
        onRefused?.(error);
        if (error instanceof AnswerGone && error.receipt) setFields(reply, write(error.receipt, credential, null));
        if (!(error instanceof PaymentRefused)) throw error;
        const receipt = checkout.refusalReceipt(error);
        if (receipt) setFields(reply, protocol.receipt(receipt, credential, null));
        send402(reply, await checkout.demandAgain(call, error, protocol.needsOffer(message)));
      }
    }

    // `done` is called only with an error. Otherwise Fastify waits for the reply, and never runs the handler.
    const preHandler: preHandlerHookHandler = (request, reply, done) => {
      answer(request, reply)?.catch(done);
    };
    gates.add(preHandler);
    return { preHandler, handler: unreachable };
  }

  return {
    guard,
    /** Whether a route can be reached through this gate alone. Each route under a priced prefix is asked at start. */
    isGuarded: ({ preHandler, handler }: Pick<RouteOptions, 'preHandler' | 'handler'>): boolean =>
      typeof preHandler === 'function' && gates.has(preHandler) && handler === unreachable,
  };
}

export type Gate<S> = ReturnType<typeof createGate<S>>;

/** Only a bug can bring a request here. Then it runs nothing and charges nothing. */
function unreachable(): never {
  throw new Error('a request passed the gate of a priced route');
}

/** After the last byte of an answer, never of an error. One that is not noted only stays redeemable for longer. */
export function noteDelivery({ raw }: FastifyReply, { onSent }: Pick<Sold, 'onSent'>, log: Pick<Log, 'error'>): void {
  if (!onSent) return;
  raw.once('finish', () => {
    if (raw.statusCode === 200) onSent().catch((err) => log.error({ err }, 'a delivery was not noted'));
  });
}

function send200(reply: FastifyReply, body: Uint8Array): void {
  reply
    .header('cache-control', 'private, no-store')
    .header('content-type', 'application/json; charset=utf-8')
    .send(body);
}

/** A page stands in for the 402 of a GET alone, and never for the refusal of a payment. */
function sendUnpaid(request: FastifyRequest, reply: FastifyReply, demand: Demand, page?: UnpaidPage): void {
  const isAsked = page !== undefined && request.method !== 'HEAD';
  if (isAsked) reply.header('vary', 'accept');
  const sendPage = isAsked ? page(request, demand) : null;
  if (sendPage === null) send402(reply, demand);
  else sendPage(setFields(reply.code(402), demand.fields));
}

function send402(reply: FastifyReply, { fields, body, contentType }: Demand): void {
  setFields(reply.code(402), fields);
  reply
    .header('link', API_CATALOG_LINK)
    .header('cache-control', 'no-store')
    .header('content-type', contentType)
    .send(body);
}

function setFields(reply: FastifyReply, fields: Fields): FastifyReply {
  for (const [name, value] of fields) reply.header(name, value);
  return reply;
}

function askOf(request: FastifyRequest, reply: FastifyReply): Ask {
  const { method, headers } = request;
  const length = headers['content-length'];
  const hasBody = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  return {
    target: { kind: 'http', method, url: request.url, hasBody },
    query: request.query as Ask['query'],
    client: () => clientKey(request.ip),
    identity: () => identityOf(request),
    signal: () => closeSignal(reply),
  };
}

/** Aborts with error 499 when the connection closes before the reply is sent: a client's departure, not a fault. */
export function closeSignal({ raw }: { raw: ServerResponse }): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(clientGone());
  });
  return controller.signal;
}
