import type { FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { parseParams } from '../../../catalogue/params.ts';
import { BadParameter } from '../../../errors.ts';
import { clientKey } from '../../../lib/limits/client-key.ts';
import { pathAndQuery } from '../../../lib/request-target.ts';
import { closeSignal } from '../../close-signal.ts';
import { bindHttp } from '../../lnbtc/binding.ts';
import { encodeHeader } from '../../protocols/x402/header.ts';
import { type LightningChallenge, lightningChallenge } from '../../protocols/x402/quoted-challenge.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { Offers } from './offers.ts';
import type { LightningOrder } from './order.ts';
import type { LightningDelivery, Redeem } from './redeem.ts';

interface GateOptions<S> {
  readonly offers: Offers<S>;
  readonly redeem: Redeem<S>;
  readonly sources: S;
  readonly network: string;
  /** Where buyers reach us: what invoices bind, whatever Host says. */
  readonly publicOrigin: string;
  readonly log: { error(detail: object, message: string): void };
}

const V1_HEADER = 'X-PAYMENT is x402 version 1; this service speaks version 2: send PAYMENT-SIGNATURE';
const EMPTY = new Uint8Array();

/** The gate of the Lightning routes, in the route itself like the one for USDC: an endpoint can be reached through nothing else. */
export function createLightningGate<S>({ offers, redeem, sources, network, publicOrigin, log }: GateOptions<S>) {
  const guarded = new WeakSet<object>();

  /** Parameters are judged before any payment, and before an invoice is made. */
  function readOrder(endpoint: Endpoint<S>, request: FastifyRequest, reply: FastifyReply): LightningOrder<S> {
    refuseBody(request);
    const target = pathAndQuery(request.raw.url ?? '');
    const url = `${publicOrigin}${target ?? ''}`;
    const binding = target === null ? null : bindHttp({ method: request.method, url, body: EMPTY });
    if (!binding)
      throw new BadParameter([{ path: '', message: 'this request target cannot be bound into an invoice' }]);
    const params = parseParams(endpoint, request.query as Record<string, unknown>, true);
    endpoint.checkParams(params, sources);
    return { endpoint, params, url, binding, client: clientKey(request.ip), signal: closeSignal(reply) };
  }

  async function refused(
    order: LightningOrder<S>,
    refusal: PaymentRefused,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { reason } = refusal;
    const settlement = { success: false, errorReason: reason, transaction: '', network };
    reply.header('payment-response', encodeHeader(settlement));
    // A fresh offer where one can be made; the refusal holds without one.
    return sendChallenge(reply, await offers(order, reason).catch(() => lightningChallenge(order, null, reason)));
  }

  function send(reply: FastifyReply, { body, receipt, delivered }: LightningDelivery): FastifyReply {
    reply.raw.once('finish', () => {
      // Not noted: the proof stays redeemable for longer, which harms nobody.
      delivered().catch((err) => log.error({ err }, 'a delivery was not noted'));
    });
    return reply
      .header('payment-response', encodeHeader(receipt))
      .header('cache-control', 'private, no-store')
      .header('content-type', 'application/json; charset=utf-8')
      .send(body);
  }

  function guard(endpoint: Endpoint<S>): { readonly handler: RouteHandlerMethod } {
    const handler: RouteHandlerMethod = async (request, reply) => {
      const order = readOrder(endpoint, request, reply);
      const header = request.headers['payment-signature'];
      if (header === undefined) {
        return sendChallenge(reply, await offers(order, 'x-payment' in request.headers ? V1_HEADER : undefined));
      }
      try {
        return send(reply, await redeem(order, String(header)));
      } catch (error) {
        if (!(error instanceof PaymentRefused)) throw error;
        return refused(order, error, reply);
      }
    };
    guarded.add(handler);
    return { handler };
  }

  return {
    guard,
    isGuarded: (route: Pick<RouteOptions, 'handler'>): boolean => guarded.has(route.handler),
  };
}

function sendChallenge(reply: FastifyReply, { header, body }: LightningChallenge): FastifyReply {
  return reply
    .code(402)
    .header('payment-required', header)
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json; charset=utf-8')
    .send(body);
}

/** The binding says that there is none, and no data route reads one. */
function refuseBody({ headers }: FastifyRequest): void {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === undefined && (length === undefined || length === '0')) return;
  throw new BadParameter([{ path: '', message: 'a data route takes no body' }]);
}
