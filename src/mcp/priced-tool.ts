import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import type { NamedChain } from '../lib/named-chain.ts';
import { own } from '../lib/own-property.ts';
import type { QuotedTools, Sold, ToolOrder } from '../payment/counter.ts';
import type { Offer } from '../payment/offer.ts';
import type { Purchase } from '../payment/prepared-counter.ts';
import type { ToolProtocol } from '../payment/protocol.ts';
import { corrected, PaymentRefused } from '../payment/refusal.ts';
import { readArguments } from './arguments.ts';
import { listPriced } from './listing.ts';
import { PAYMENT } from './meta.ts';
import { askedRail, paidRail, type Rail, railsOf } from './rails.ts';
import { answered, mustPay } from './results.ts';
import type { Tool, ToolCall } from './tool.ts';
import { toolUrl } from './tool-name.ts';

/** The functions that sell priced tools, shared with the routes. */
export interface Counters<S> {
  readonly chain: NamedChain;
  readonly publicOrigin: string;
  readonly sources: S;
  readonly protocol: ToolProtocol;
  /** The price of an endpoint in USDC. */
  offerOf(endpoint: Endpoint<never>): Offer;
  purchase: Purchase<S>;
  readonly lightning: QuotedTools<S>;
}

/** A call whose arguments were parsed. */
interface Order {
  readonly call: ToolCall;
  readonly query: Query;
  readonly params: unknown;
}

const WRONG_RAIL = 'No matching payment requirements';

/**
 * Makes a tool of a priced entry. A call takes these steps:
 * 1. The arguments are parsed, before the call is paid or an offer is made.
 * 2. Without a payment, the answer says what to pay.
 * 3. With a payment, the call goes the route's way: USDC through the purchase, bitcoin through the redemption, over the same ledger, and the same
 * request for redelivery.
 * 4. A refused payment gets the reason and a new offer.
 */
export function createPricedTool<S>(endpoint: Endpoint<S>, counters: Counters<S>): Tool {
  const { publicOrigin, sources, protocol, purchase, lightning } = counters;
  const rails = railsOf(endpoint);
  const offerNow = (): Offer | null => (rails.includes('usdc') ? counters.offerOf(endpoint) : null);
  const listed = listPriced(endpoint, rails, counters.chain);
  const { name, inputSchema } = listed;
  const url = toolUrl(name);
  const demand = protocol.prepare(endpoint, { name, url, inputSchema });
  const server = `${publicOrigin}/mcp`;

  function toolOrder({ call, params }: Order): ToolOrder<S> {
    const { arguments: given, meta, client, signal } = call;
    return { endpoint, params, server, name, url, arguments: given, meta, client, signal };
  }

  /** The entries of `accepts`: the rail that was asked for, then USDC, because offering USDC costs nothing. */
  async function offered(order: Order, rail: Rail): Promise<PaymentRequirements[]> {
    const invoice = rail === 'lightning' ? [(await lightning.quote(lightning.bind(toolOrder(order)))).requirement] : [];
    return [...invoice, ...(offerNow()?.accepts ?? [])];
  }

  async function sellForUsdc({ call, query }: Order, payment: unknown): Promise<CallToolResult> {
    const offer = offerNow();
    if (!offer) throw new PaymentRefused(WRONG_RAIL);
    const { client, identity, signal } = call;
    const presentation = { credential: protocol.read(payment), query, client, identity, signal };
    return handOut(call, await purchase(endpoint, offer.requirement, presentation));
  }

  async function sellForSats(order: Order, payment: unknown): Promise<CallToolResult> {
    if (!rails.includes('lightning')) throw new PaymentRefused(WRONG_RAIL);
    const bound = lightning.bind(toolOrder(order));
    return handOut(order.call, await lightning.sell(bound, protocol.read(payment)));
  }

  /** Answers a refused payment with the reason and, as at the routes, a new offer where one can be made. */
  async function refused(order: Order, rail: Rail, refusal: PaymentRefused): Promise<CallToolResult> {
    const offers = await offered(order, rail).catch(() => [...(offerNow()?.accepts ?? [])]);
    const accepts = refusal.correction ? corrected(offers, refusal.correction) : offers;
    const receipt = rail === 'lightning' ? lightning.refusalReceipt(refusal) : refusal.settlement;
    return mustPay(demand(accepts, refusal.reason), receipt);
  }

  async function run(call: ToolCall): Promise<CallToolResult> {
    const order = { call, ...readArguments(endpoint, call.arguments) };
    endpoint.checkParams(order.params, sources);
    const payment = own(call.meta, PAYMENT);
    if (payment === undefined) return mustPay(demand(await offered(order, askedRail(call.meta, rails))));
    const rail = paidRail(payment);
    try {
      return await (rail === 'lightning' ? sellForSats(order, payment) : sellForUsdc(order, payment));
    } catch (error) {
      if (!(error instanceof PaymentRefused)) throw error;
      return refused(order, rails.includes(rail) ? rail : (rails[0] ?? rail), error);
    }
  }

  return { listed, group: 'priced', run };
}

function handOut(call: ToolCall, { body, receipt, onSent }: Sold): CallToolResult {
  if (onSent) call.onSent(onSent);
  return answered(body, receipt);
}
