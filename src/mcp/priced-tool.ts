import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import { BadParameter } from '../errors.ts';
import { own } from '../lib/own-property.ts';
import { bindMcp } from '../payment/lnbtc/binding.ts';
import type { Offer } from '../payment/offer.ts';
import { createOffer, type Terms } from '../payment/open-offers.ts';
import type { Presentation } from '../payment/order.ts';
import { decodePayment } from '../payment/protocols/x402/header.ts';
import type { Offers } from '../payment/rails/lightning/offers.ts';
import type { LightningOrder } from '../payment/rails/lightning/order.ts';
import type { Redeem } from '../payment/rails/lightning/redeem.ts';
import type { Delivery } from '../payment/receipt.ts';
import { PaymentRefused } from '../payment/refusal.ts';
import { readArguments } from './arguments.ts';
import { createChallenge } from './challenge.ts';
import { listPriced } from './listing.ts';
import { headerOf, PAYMENT } from './meta.ts';
import { askedRail, paidRail, type Rail, railsOf } from './rails.ts';
import { answered, mustPay } from './results.ts';
import type { Tool, ToolCall } from './tool.ts';
import { toolUrl } from './tool-name.ts';

/** What priced tools are sold through: the same counters as the routes'. */
export interface Counters<S> {
  readonly terms: Terms;
  readonly sources: S;
  purchase(endpoint: Endpoint<S>, requirement: Offer['requirement'], presentation: Presentation): Promise<Delivery>;
  readonly lightning: { readonly offers: Offers<S>; readonly redeem: Redeem<S>; readonly network: string };
}

/** A call with its arguments judged. */
interface Order {
  readonly call: ToolCall;
  readonly query: Query;
  readonly params: unknown;
}

const WRONG_RAIL = 'No matching payment requirements';

/**
 * A priced entry as a tool. In order: 1. the arguments are judged, before anybody pays or is asked to; 2. without a payment the call is
 * told what to pay; 3. with one it goes the way of the route's: USDC through the purchase, sats through the redemption, the same ledger,
 * the same request for redelivery; 4. a refused payment is told why, with what would be taken instead.
 */
export function createPricedTool<S>(endpoint: Endpoint<S>, counters: Counters<S>): Tool {
  const { terms, sources, purchase, lightning } = counters;
  const rails = railsOf(endpoint);
  const offer = rails.includes('usdc') ? createOffer(endpoint, terms) : null;
  const listed = listPriced(endpoint, rails);
  const { name } = listed;
  const challenge = createChallenge(endpoint, listed);
  const server = `${terms.publicOrigin}/mcp`;

  function lightningOrder({ call, params }: Order): LightningOrder<S> {
    const binding = bindMcp({ server, name, arguments: call.arguments, metadata: call.meta });
    if (!binding) {
      throw new BadParameter([{ path: 'arguments', message: 'these arguments cannot be bound into an invoice' }]);
    }
    const { client, signal } = call;
    return { endpoint, params, url: toolUrl(name), binding, client, signal };
  }

  async function invoiceFor(order: Order): Promise<PaymentRequirements> {
    return (await lightning.offers(lightningOrder(order))).requirement;
  }

  /** What is offered on a rail: what was asked for first, and USDC beside it, since that costs nothing. */
  async function offered(order: Order, rail: Rail): Promise<PaymentRequirements[]> {
    const invoice = rail === 'lightning' ? [await invoiceFor(order)] : [];
    return offer ? [...invoice, ...offer.accepts] : invoice;
  }

  async function sellForUsdc({ call, query }: Order, header: string): Promise<CallToolResult> {
    if (!offer) throw new PaymentRefused(WRONG_RAIL);
    const { client, identity, signal } = call;
    const presentation = { credential: decodePayment(header), query, client, identity, signal };
    const { body, receipt } = await purchase(endpoint, offer.requirement, presentation);
    return answered(body, receipt);
  }

  async function sellForSats(order: Order, header: string): Promise<CallToolResult> {
    if (!rails.includes('lightning')) throw new PaymentRefused(WRONG_RAIL);
    const { body, receipt, delivered } = await lightning.redeem(lightningOrder(order), decodePayment(header));
    order.call.onSent(delivered);
    return answered(body, receipt);
  }

  /** As at the routes: a fresh offer where one can be made; the refusal holds without one. */
  async function refused(order: Order, rail: Rail, refusal: PaymentRefused): Promise<CallToolResult> {
    const { reason } = refusal;
    const accepts = await offered(order, rail).catch(() => [...(offer?.accepts ?? [])]);
    const failed = { success: false, errorReason: reason, transaction: '', network: lightning.network };
    const settlement = rail === 'lightning' ? (failed as typeof refusal.settlement) : refusal.settlement;
    return mustPay(challenge(accepts, reason), settlement);
  }

  async function run(call: ToolCall): Promise<CallToolResult> {
    const order = { call, ...readArguments(endpoint, call.arguments) };
    endpoint.checkParams(order.params, sources);
    const payment = own(call.meta, PAYMENT);
    if (payment === undefined) return mustPay(challenge(await offered(order, askedRail(call.meta, rails))));
    const rail = paidRail(payment);
    try {
      const header = headerOf(payment);
      return await (rail === 'lightning' ? sellForSats(order, header) : sellForUsdc(order, header));
    } catch (error) {
      if (!(error instanceof PaymentRefused)) throw error;
      return refused(order, rails.includes(rail) ? rail : (rails[0] ?? rail), error);
    }
  }

  return { listed, group: 'priced', run };
}
