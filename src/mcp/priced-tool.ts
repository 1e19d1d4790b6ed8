import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import { chainTitle, type NamedChain } from '../lib/service.ts';
import { MSAT_PER_SAT } from '../lib/units.ts';
import { own } from '../lib/untrusted.ts';
import type { QuotedTools, Sold, ToolOrder } from '../payment/call.ts';
import type { Offer, Purchase } from '../payment/checkout.ts';
import type { ToolProtocol } from '../payment/protocol.ts';
import { corrected, NOT_OFFERED, PaymentRefused, type RefusalWords } from '../payment/refusal.ts';
import { inputSchema, listPriced, outputSchema } from './listing.ts';
import { answered, mustPay, readArguments } from './results.ts';
import {
  askedRail,
  isSoldAt,
  PAYMENT,
  paidRail,
  type Rail,
  railsOf,
  type Tool,
  type ToolCall,
  toolName,
  toolUrl,
} from './tool.ts';

// A tool of a priced entry. The arguments are parsed before a call is paid or an offer is made. With a payment, the
// call goes the route's way, over the same ledger. A refused payment gets the reason and a new offer.

export interface Checkouts<S> {
  readonly chain: NamedChain;
  readonly publicOrigin: string;
  readonly sources: S;
  readonly protocol: ToolProtocol;
  /** In USDC. */
  offerOf(endpoint: Endpoint<never>): Offer;
  purchase: Purchase<S>;
  readonly lightning: QuotedTools<S>;
  readonly words: RefusalWords;
}

interface Order {
  readonly call: ToolCall;
  readonly query: Query;
  readonly params: unknown;
}

export function createPricedTool<S>(endpoint: Endpoint<S>, checkouts: Checkouts<S>): Tool {
  const { chain, publicOrigin, sources, protocol, purchase, lightning } = checkouts;
  const rails = railsOf(endpoint);
  const offerNow = (): Offer | null => (rails.includes('usdc') ? checkouts.offerOf(endpoint) : null);
  const network = offerNow()?.requirement.network ?? '';
  const name = toolName(endpoint);
  const unpaid = createUnpaid(endpoint, checkouts, name);
  const bind = (order: Order) => lightning.bind(toolOrder(endpoint, publicOrigin, order));

  /** The rail that was asked for, then USDC, because offering USDC costs nothing. */
  async function offered(order: Order, rail: Rail): Promise<PaymentRequirements[]> {
    const invoice = rail === 'lightning' ? [(await lightning.quote(bind(order))).requirement] : [];
    return [...invoice, ...(offerNow()?.accepts ?? [])];
  }

  async function sellForUsdc({ call, query }: Order, payment: unknown): Promise<CallToolResult> {
    const offer = offerNow();
    if (!offer) throw new PaymentRefused(NOT_OFFERED);
    const { client, identity, signal } = call;
    const presentation = { credential: protocol.read(payment), query, client, identity, signal };
    return handOut(call, await purchase(endpoint, offer.requirement, presentation));
  }

  async function sellForSats(order: Order, payment: unknown): Promise<CallToolResult> {
    if (!rails.includes('lightning')) throw new PaymentRefused(NOT_OFFERED);
    return handOut(order.call, await lightning.sell(bind(order), protocol.read(payment)));
  }

  async function refused(order: Order, rail: Rail, refusal: PaymentRefused): Promise<CallToolResult> {
    const offers = await offered(order, rail).catch(() => [...(offerNow()?.accepts ?? [])]);
    const accepts = refusal.correction ? corrected(offers, refusal.correction) : offers;
    const receipt = rail === 'lightning' ? lightning.refusalReceipt(refusal) : refusal.settlement;
    return unpaid(accepts, refusal, receipt);
  }

  async function run(call: ToolCall): Promise<CallToolResult> {
    const order = { call, ...readArguments(endpoint, call.arguments) };
    endpoint.checkParams(order.params, sources);
    const payment = own(call.meta, PAYMENT);
    if (payment === undefined) return unpaid(await offered(order, askedRail(call.meta, rails, call.address.rail)));
    const rail = paidRail(payment);
    try {
      return await (rail === 'lightning' ? sellForSats(order, payment) : sellForUsdc(order, payment));
    } catch (error) {
      if (!(error instanceof PaymentRefused)) throw error;
      return refused(order, rails.includes(rail) ? rail : (rails[0] ?? rail), error);
    }
  }

  return {
    name,
    group: 'priced',
    listedAt: (address) =>
      isSoldAt(address.rail, rails) ? listPriced(endpoint, { rails, chain, network }, address) : null,
    outputSchema: () => outputSchema(endpoint.result, true),
    run,
  };
}

function toolOrder<S>(endpoint: Endpoint<S>, publicOrigin: string, { call, params }: Order): ToolOrder<S> {
  const { address, arguments: given, meta, client, signal } = call;
  const name = toolName(endpoint);
  const server = `${publicOrigin}${address.path}`;
  return { endpoint, params, server, name, url: toolUrl(name), arguments: given, meta, client, signal };
}

/** The result of a call that is not paid for. The object has the reason of a refusal, the sentence has it in words. */
function createUnpaid<S>(endpoint: Endpoint<S>, { chain, protocol, words }: Checkouts<S>, tool: string) {
  const priceUsd = endpoint.price?.usd ?? '';
  const demand = protocol.prepare(endpoint, { name: tool, url: toolUrl(tool), inputSchema: inputSchema(endpoint) });
  return (
    accepts: readonly PaymentRequirements[],
    refusal?: PaymentRefused,
    receipt?: SettleResponse | null,
  ): CallToolResult =>
    mustPay(
      unpaidSentence({ tool, priceUsd, chain, accepts, refusal: refusal ? words(refusal) : null }),
      demand(accepts, refusal?.reason),
      receipt,
    );
}

function handOut(call: ToolCall, { body, receipt, onSent }: Sold): CallToolResult {
  if (onSent) call.onSent(onSent);
  return answered(body, receipt);
}

interface Unpaid {
  readonly tool: string;
  readonly priceUsd: string;
  readonly chain: NamedChain;
  readonly accepts: readonly PaymentRequirements[];
  /** What is wrong with the payment that came, in whole sentences; null where none came. */
  readonly refusal: string | null;
}

/** Says that nothing was charged, the price, and what comes next. After a refusal the price is a new payment's. */
export function unpaidSentence({ tool, priceUsd, chain, accepts, refusal }: Unpaid): string {
  const [offer] = accepts;
  const happened =
    refusal === null
      ? `${tool} is not paid for yet, and nothing was charged.`
      : `The payment for ${tool} was refused, and this call was not charged. ${refusal}`;
  if (!offer) return `${happened} No new payment can be asked for now: make the same call again later.`;
  const sats = offer.asset === 'BTC' ? BigInt(offer.amount) / MSAT_PER_SAT : null;
  const [price, wallet] =
    sats === null
      ? [`${priceUsd} USDC on ${chainTitle(chain)}`, 'USDC']
      : [`${sats} ${sats === 1n ? 'sat' : 'sats'} over Lightning (${priceUsd} USD)`, 'Lightning'];
  const what = refusal === null ? 'It costs' : 'A new payment costs';
  const how = `a client with a ${wallet} wallet pays it by the terms below, and then makes the same call again.`;
  return `${happened} ${what} ${price}: ${how}`;
}
