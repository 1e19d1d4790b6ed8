import type { FastifyReply, FastifyRequest, preHandlerHookHandler, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { identityOf } from '../lib/limits/client-identity.ts';
import { clientKey } from '../lib/limits/client-key.ts';
import { closeSignal } from './close-signal.ts';
import type { Ask, Counter, Sold } from './counter.ts';
import type { Credential, Demand, Fields, HttpProtocol } from './protocol.ts';
import { PaymentRefused } from './refusal.ts';

interface GateOptions<S> {
  /** The counter that sells an endpoint on this surface. */
  counterOf(endpoint: Endpoint<S>): Counter<unknown>;
  protocol: HttpProtocol;
  log: { error(detail: object, message: string): void };
}

/** What a priced route is mounted with: the gate sells and answers, and no request reaches the handler behind it. */
interface GatedRoute {
  readonly preHandler: preHandlerHookHandler;
  readonly handler: RouteHandlerMethod;
}

/**
 * The gate of a priced surface. It sits in the route itself, because a gate that matches paths can be walked around by other spellings of them.
 * An endpoint is run by its counter alone.
 */
export function createGate<S>({ counterOf, protocol, log }: GateOptions<S>) {
  const gates = new WeakSet<object>();

  function guard(endpoint: Endpoint<S>): GatedRoute {
    const counter = counterOf(endpoint);

    /** The whole way of a request. Synchronous where a demand is prepared, so that an unpaid request costs no promise. */
    function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> | void {
      // 1. What must be right before anybody pays.
      const order = counter.read(askOf(request, reply));
      // 2. Without a payment the request is told what to pay; a HEAD never gets past that.
      const { headers } = request;
      if (request.method === 'HEAD' || !protocol.carries(headers)) {
        const demand = counter.demand(order, protocol.unpaidReason(headers));
        return demand instanceof Promise ? demand.then((made) => send402(reply, made)) : send402(reply, demand);
      }
      // 3. With one it buys the answer, or is told why not.
      return sell(order, () => protocol.read(headers), reply);
    }

    async function sell(order: unknown, read: () => Credential, reply: FastifyReply): Promise<void> {
      try {
        send200(reply, await counter.sell(order, read()));
      } catch (error) {
        if (!(error instanceof PaymentRefused)) throw error;
        const receipt = counter.refusalReceipt(error);
        if (receipt) setFields(reply, protocol.receipt(receipt));
        send402(reply, await counter.demandAgain(order, error));
      }
    }

    // A callback that is not called ends the request here: the reply is on its way.
    const preHandler: preHandlerHookHandler = (request, reply, done) => {
      answer(request, reply)?.catch(done);
    };
    gates.add(preHandler);
    return { preHandler, handler: unreachable };
  }

  function send200(reply: FastifyReply, { body, receipt, onSent }: Sold): void {
    if (onSent) {
      reply.raw.once('finish', () => {
        // Not noted: the payment stays redeemable for longer, which harms nobody.
        onSent().catch((err) => log.error({ err }, 'a delivery was not noted'));
      });
    }
    setFields(reply, protocol.receipt(receipt));
    reply
      .header('cache-control', 'private, no-store')
      .header('content-type', 'application/json; charset=utf-8')
      .send(body);
  }

  return {
    guard,
    /** Whether a route can be reached through this gate alone; asked of every route under a priced prefix at start. */
    isGuarded: ({ preHandler, handler }: Pick<RouteOptions, 'preHandler' | 'handler'>): boolean =>
      typeof preHandler === 'function' && gates.has(preHandler) && handler === unreachable,
  };
}

export type Gate<S> = ReturnType<typeof createGate<S>>;

/** Behind every gate. It would be a fault of ours to arrive here: nothing is run and nothing charged. */
function unreachable(): never {
  throw new Error('a request passed the gate of a priced route');
}

function send402(reply: FastifyReply, { fields, body, contentType }: Demand): void {
  setFields(reply.code(402), fields);
  reply.header('cache-control', 'no-store').header('content-type', contentType).send(body);
}

function setFields(reply: FastifyReply, fields: Fields): void {
  for (const [name, value] of fields) reply.header(name, value);
}

function askOf(request: FastifyRequest, reply: FastifyReply): Ask {
  const { method, headers } = request;
  const length = headers['content-length'];
  return {
    method,
    target: request.url,
    query: request.query as Ask['query'],
    hasBody: headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0'),
    client: () => clientKey(request.ip),
    identity: () => identityOf(request),
    signal: () => closeSignal(reply),
  };
}
