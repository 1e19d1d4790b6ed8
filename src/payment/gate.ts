import type { FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { identityOf } from '../lib/limits/client-identity.ts';
import { clientKey } from '../lib/limits/client-key.ts';
import { closeSignal } from './close-signal.ts';
import type { Presentation } from './order.ts';
import { encodeHeader } from './protocols/x402/header.ts';
import { createHint } from './protocols/x402/hint.ts';
import type { Delivery } from './protocols/x402/receipt.ts';
import { createOffer, type Offer, type Terms } from './protocols/x402/requirements.ts';
import { PaymentRefused } from './refusal.ts';

type Purchase<S> = (
  endpoint: Endpoint<S>,
  requirement: Offer['requirement'],
  presentation: Presentation,
) => Promise<Delivery>;

const V1_HEADER = 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE';

/** What a priced route is mounted with: its handler is the gate, and the endpoint can be reached through nothing else. */
interface GuardedRoute {
  readonly handler: RouteHandlerMethod;
}

/**
 * The gate of the priced routes. It sits in the route itself, because a gate that matches paths can be walked around
 * by other spellings of them; a HEAD or a request without a payment never gets past the challenge.
 */
export function createGate<S>(terms: Terms, purchase: Purchase<S>) {
  const guarded = new WeakSet<object>();

  function guard(endpoint: Endpoint<S>): GuardedRoute {
    const offer = createOffer(endpoint, terms);
    const hint = createHint(endpoint);

    function refuse(request: FastifyRequest, reply: FastifyReply, error?: string): FastifyReply {
      return reply
        .code(402)
        .header('payment-required', offer.challenge(request.url, error))
        .header('cache-control', 'no-store')
        .header('content-type', 'application/json')
        .send(request.method === 'HEAD' ? null : hint(request.query as Record<string, unknown>));
    }

    const handler: RouteHandlerMethod = (request, reply) => {
      const header = request.headers['payment-signature'];
      if (request.method === 'HEAD' || header === undefined) {
        return refuse(request, reply, request.headers['x-payment'] === undefined ? undefined : V1_HEADER);
      }
      return sell(request, reply, String(header));
    };

    async function sell(request: FastifyRequest, reply: FastifyReply, header: string): Promise<FastifyReply> {
      const query = request.query as Record<string, unknown>;
      const who = { client: clientKey(request.ip), identity: identityOf(request) };
      const presentation = { header, query, ...who, signal: closeSignal(reply) };
      try {
        const { body, receipt } = await purchase(endpoint, offer.requirement, presentation);
        return reply
          .header('payment-response', encodeHeader(receipt))
          .header('cache-control', 'private, no-store')
          .header('content-type', 'application/json; charset=utf-8')
          .send(body);
      } catch (error) {
        if (!(error instanceof PaymentRefused)) throw error;
        if (error.settlement) reply.header('payment-response', encodeHeader(error.settlement));
        return refuse(request, reply, error.reason);
      }
    }

    guarded.add(handler);
    return { handler };
  }

  return {
    guard,
    /** Whether a route's handler is this gate's own; asked of every route under the priced prefix at start. */
    isGuarded: (route: Pick<RouteOptions, 'handler'>): boolean => guarded.has(route.handler),
  };
}

export type Gate<S> = ReturnType<typeof createGate<S>>;
