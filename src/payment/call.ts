import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import { type AppError, NotFound } from '../errors.ts';
import type { PaymentKey } from '../store/ports/payments.ts';
import type { Credential, Demand, ProtocolName, Quote, Receipt, RequestMessage } from './protocol.ts';
import type { PurchaseRail, SignedPayment } from './rail.ts';
import type { PaymentRefused } from './refusal.ts';

// A call that is sold, whatever surface brings it: what the transport asks (`Ask`), what a checkout answers (`Sold`, a
// demand or an error), and how the core sees a request with a payment attached (`Presentation`, `Order`).

/** A request for a priced endpoint, without any type of the HTTP library. */
export interface Ask {
  readonly method: string;
  /** The request target as received. */
  readonly target: string;
  readonly query: Query;
  readonly hasBody: boolean;
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  client(): string;
  /** Identifies the client on redelivery. Random where only a proxy's address is known. */
  identity(): string;
  /** Aborts when the buyer's connection closes. */
  signal(): AbortSignal;
}

export interface Sold {
  readonly body: Uint8Array;
  readonly receipt: Receipt;
  /** When the money moved, in Unix milliseconds; null where that is not noted. Equal for each delivery of a payment. */
  readonly at: number | null;
  /** The transport calls it after the last byte is sent. */
  onSent?(): Promise<void>;
}

/** Sells one endpoint on one surface. `Order` is a request as this checkout has parsed it. */
export interface Checkout<Order> {
  /** Checks what must be right before the client is asked to pay. Throws BadParameter. */
  read(ask: Ask): Order;
  /** Returns what the client must pay. Throws when the order cannot be sold now. */
  demand(order: Order, error?: string): Demand | Promise<Demand>;
  /** Throws PaymentRefused (402), or an AppError that says whether money moved. */
  sell(order: Order, credential: Credential): Promise<Sold>;
  /** The receipt of a refusal: x402 repeats in it why a settlement was refused. Null where none is due. */
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
  /** As `demand`, after a refusal. Throws when no offer can be made and the payment's protocol needs one. */
  demandAgain(order: Order, refusal: PaymentRefused, message: RequestMessage): Demand | Promise<Demand>;
}

const NOT_SOLD =
  'This route is not sold here. GET /v1/paid lists those that are sold in USDC, GET /v1/lightning those in bitcoin.';

/** Of a route that is not sold any more: `refusal`, by default 404. Payments from before still get their answer. */
export function onlyKnown<Order>(
  checkout: Checkout<Order>,
  refusal: () => AppError = () => new NotFound(NOT_SOLD, 'no_such_route'),
): Checkout<Ask> {
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

export interface ToolOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** A payment is bound to the server's address, the tool's name, and the arguments and `_meta` as received. */
  readonly server: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly meta: unknown;
  readonly url: string;
  readonly client: string;
  readonly signal: AbortSignal;
}

/** Tools whose price is quoted for each call. The answer is made before the offer. */
export interface QuotedTools<S, Bound = unknown> {
  /** The call in the form that an offer is bound to. Throws BadParameter for a call that cannot be bound. */
  bind(order: ToolOrder<S>): Bound;
  quote(bound: Bound): Promise<Quote>;
  sell(bound: Bound, credential: Credential): Promise<Sold>;
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
}

export interface Presentation {
  readonly credential: Credential;
  readonly query: Query;
  readonly client: string;
  readonly identity: string;
  readonly signal: AbortSignal;
}

export interface PaidRequest<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  readonly price: bigint;
  readonly rail: PurchaseRail;
  readonly requestHash: Uint8Array;
  readonly protocol: ProtocolName;
  readonly client: string;
  readonly identifierHash: Uint8Array | null;
  /** Whether the identifier is a challenge's, which buys one answer: with another payment, the challenge is used. */
  readonly isSingleUse: boolean;
}

export interface Order<S> extends PaidRequest<S> {
  readonly payment: SignedPayment;
  readonly authorization: SignedPayment['authorization'];
  readonly authorizationHash: Uint8Array;
  readonly key: PaymentKey;
  readonly clientHash: Uint8Array;
}
