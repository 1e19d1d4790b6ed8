import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import { type AppError, NotFound } from '../errors.ts';
import type { PaymentKey } from '../store/ports/sales.ts';
import type { Credential, Demand, ProtocolName, Quote, Receipt, RequestMessage } from './protocol.ts';
import type { PurchaseRail, SignedPayment } from './rail.ts';
import type { PaymentRefused } from './refusal.ts';

/** A request for a priced endpoint, without any type of the HTTP library. */
export interface Ask {
  readonly method: string;
  /** The request target as received. */
  readonly target: string;
  readonly query: Query;
  /** Whether the header fields announce a body. */
  readonly hasBody: boolean;
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  client(): string;
  /** Identifies the client on redelivery. A random value where only a proxy's address is known. */
  identity(): string;
  /** Aborts when the buyer's connection closes. */
  signal(): AbortSignal;
}

/** A sold answer, ready to be sent. */
export interface Sold {
  readonly body: Uint8Array;
  readonly receipt: Receipt;
  /** When the money moved, in Unix milliseconds; null where no time is noted. Each delivery of one payment has the same. */
  readonly at: number | null;
  /** The transport calls it after the last byte is sent. */
  onSent?(): Promise<void>;
}

/** Sells one endpoint on one surface. `Order` is a request as this counter has parsed it. */
export interface Counter<Order> {
  /** Checks what must be right before the client is asked to pay. Throws BadParameter. */
  read(ask: Ask): Order;
  /** Returns what the client must pay for the order. Throws when the order cannot be sold now. */
  demand(order: Order, error?: string): Demand | Promise<Demand>;
  /** Sells the order. Throws PaymentRefused (402), or an AppError that says whether money moved. */
  sell(order: Order, credential: Credential): Promise<Sold>;
  /** Returns the receipt that goes with a refusal: x402 repeats in it why a settlement was refused. Null where no receipt is due. */
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
  /** Returns what the client must pay after a refusal of the payment in `message`. Throws when no offer can be made and the payment's protocol needs one. */
  demandAgain(order: Order, refusal: PaymentRefused, message: RequestMessage): Demand | Promise<Demand>;
}

const NOT_SOLD =
  'This route is not sold here. GET /v1/paid lists those that are sold in USDC, GET /v1/lightning those in bitcoin.';

/**
 * The counter of a route that is not sold any more. It offers nothing: an unpaid request gets `refusal`, by default 404.
 * A payment from before is judged by its row or its invoice, so that a buyer who paid gets the answer; a refused one
 * gets the refusal too.
 */
export function onlyKnown<Order>(
  counter: Counter<Order>,
  refusal: () => AppError = () => new NotFound(NOT_SOLD, 'no_such_route'),
): Counter<Ask> {
  const refuse = (): never => {
    throw refusal();
  };
  return {
    // What cannot be sold need not be read.
    read: (ask) => ask,
    sell: (ask, credential) => counter.sell(counter.read(ask), credential),
    demand: refuse,
    refusalReceipt: counter.refusalReceipt,
    demandAgain: refuse,
  };
}

/** A call of a priced tool with parsed arguments. */
export interface ToolOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** A payment for this call is bound to four values: the server's address, the tool's name, and the arguments and `_meta` as received. */
  readonly server: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly meta: unknown;
  /** The resource URL in the demand. */
  readonly url: string;
  readonly client: string;
  readonly signal: AbortSignal;
}

/** Tools whose price is quoted for each call. The answer is made before the offer. */
export interface QuotedTools<S, Bound = unknown> {
  /** Returns the call in the form that an offer is bound to. Throws BadParameter for a call that cannot be bound. */
  bind(order: ToolOrder<S>): Bound;
  quote(bound: Bound): Promise<Quote>;
  sell(bound: Bound, credential: Credential): Promise<Sold>;
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
}

/** A request with a payment attached, whatever transport brought it. */
export interface Presentation {
  readonly credential: Credential;
  readonly query: Query;
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  readonly client: string;
  /** Identifies the client on redelivery. A random value where only a proxy's address is known. */
  readonly identity: string;
  /** Aborts when the buyer's connection closes. */
  readonly signal: AbortSignal;
}

/** A parsed request for a priced endpoint, and the rail that its payment names. */
export interface PaidRequest<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** What the request costs, in USDC base units. */
  readonly price: bigint;
  readonly rail: PurchaseRail;
  readonly requestHash: Uint8Array;
  readonly protocol: ProtocolName;
  /** The client's key in the limits. */
  readonly client: string;
  readonly identifierHash: Uint8Array | null;
  /** Whether the identifier is that of a challenge, which buys one answer. Such an identifier with another payment is a used challenge. */
  readonly isSingleUse: boolean;
}

/** A parsed request with its decoded payment, before the cheap checks. */
export interface Order<S> extends PaidRequest<S> {
  readonly payment: SignedPayment;
  readonly authorization: SignedPayment['authorization'];
  readonly authorizationHash: Uint8Array;
  /** The ledger's key of the authorization on that rail. */
  readonly key: PaymentKey;
  readonly clientHash: Uint8Array;
}
