import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import type { Credential, Demand, Quote, Receipt } from './protocol.ts';
import type { PaymentRefused } from './refusal.ts';

/** A request for a priced endpoint, without the library that received it. */
export interface Ask {
  readonly method: string;
  /** The request target as it came. */
  readonly target: string;
  readonly query: Query;
  /** Whether its head announces a body. */
  readonly hasBody: boolean;
  /** Who asks, as limits see it. */
  client(): string;
  /** What tells the client from all others on redelivery; of a request whose address is a proxy's, a value that no other request has. */
  identity(): string;
  /** Aborts when the buyer's connection is gone. */
  signal(): AbortSignal;
}

/** A sold answer, ready to leave. */
export interface Sold {
  readonly body: Uint8Array;
  readonly receipt: Receipt;
  /** To be called when the last byte has left. */
  onSent?(): Promise<void>;
}

/** One endpoint on sale on one surface. The gate brings it requests; `Order` is a request as this counter reads it. */
export interface Counter<Order> {
  /** Judges what must be right before anybody pays or is asked to; throws BadParameter. */
  read(ask: Ask): Order;
  /** What the order costs. Throws where it cannot be sold now. */
  demand(order: Order, error?: string): Demand | Promise<Demand>;
  /** Sells it. Throws PaymentRefused (402), or an AppError that says whether money moved. */
  sell(order: Order, credential: Credential): Promise<Sold>;
  /** The receipt of a refusal, where its buyer is owed one: x402 wants the reason of a refused settlement there. */
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
  /** What is offered after a refusal. */
  demandAgain(order: Order, refusal: PaymentRefused): Demand | Promise<Demand>;
}

/** A call of a priced tool whose arguments have been judged. */
export interface ToolOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** What a payment for this call binds: the server's address, the tool's name, and the arguments and `_meta` as they came. */
  readonly server: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly meta: unknown;
  /** What the demand names. */
  readonly url: string;
  readonly client: string;
  readonly signal: AbortSignal;
}

/** Tools that are quoted for each call: the answer is made before the offer. */
export interface QuotedTools<S, Bound = unknown> {
  /** The call as an offer binds it. Throws BadParameter where it cannot be bound. */
  bind(order: ToolOrder<S>): Bound;
  quote(bound: Bound): Promise<Quote>;
  sell(bound: Bound, credential: Credential): Promise<Sold>;
  refusalReceipt(refusal: PaymentRefused): Receipt | null;
}
