import type { IncomingHttpHeaders } from 'node:http';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';

/** Tells the buyer the outcome of the payment, in the shape of x402's SettleResponse. */
export type Receipt = SettleResponse;

/** A presented payment as its protocol decoded it. Its form is valid. Its content is not checked yet. */
export interface Credential {
  /** The terms that the buyer says it accepted. */
  readonly accepted: Readonly<Record<string, unknown>>;
  /** The payment itself. Only a rail reads it. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** Extensions from the buyer, such as a payment identifier. */
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Header fields, in the order in which they go out. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** What a request is asked to pay: header fields and a body of JSON text. */
export interface Demand {
  readonly fields: Fields;
  readonly body: string;
  readonly contentType: string;
}

/** An offer made for one request: its terms and its price. */
export interface Quote {
  readonly requirement: PaymentRequirements;
  /** Decimal strings in USD: the price, and the rate of one bitcoin. */
  readonly priceUsd: string;
  readonly btcUsd: string;
}

/** What a quote is for. */
export interface Quoted {
  readonly endpoint: Endpoint<never>;
  /** The resource URL that the payment is bound to. */
  readonly url: string;
}

/** How a payment is asked for and presented over HTTP. It knows no rail. */
export interface HttpProtocol {
  /** Whether a request presents a payment in this protocol's form. */
  carries(headers: IncomingHttpHeaders): boolean;
  /** Returns the presented payment. Throws PaymentRefused when the header fields hold no valid payment of this protocol. */
  read(headers: IncomingHttpHeaders): Credential;
  /** Why a request without a payment is refused. Undefined where the price says enough. */
  unpaidReason(headers: IncomingHttpHeaders): string | undefined;
  /** Prepares the demand of an endpoint whose terms are known at start. The result makes the fields for a request target. */
  prepare(endpoint: Endpoint<never>, accepts: readonly PaymentRequirements[], origin: string): Prepared;
  /** Makes the demand of a quote. A null `quote` means that none could be made after a refusal; the demand then offers nothing. */
  quote(of: Quoted, quote: Quote | null, error?: string): Demand;
  /** The fields that carry a receipt, for a paid answer or a refused settlement. */
  receipt(receipt: Receipt): Fields;
}

/** The demand of an endpoint, prepared at start except for the request's own parts. */
export interface Prepared {
  /** `accepts`: other entries than the prepared ones, for one buyer. */
  fields(target: string, error?: string, accepts?: readonly PaymentRequirements[]): Fields;
  /** The body for a person who sent a request without a payment. */
  body(query: Readonly<Record<string, unknown>>): string;
}

/** A priced tool as its demand names it. */
export interface SoldTool {
  readonly name: string;
  /** The resource URL that the payment is for. */
  readonly url: string;
  /** JSON Schema of its arguments. */
  readonly inputSchema: object;
}

/** Makes the demand for a tool call. `error` says why a presented payment was refused. */
export type ToolDemand = (accepts: readonly PaymentRequirements[], error?: string) => PaymentRequired;

/** How a payment is asked for and presented in a tool call. It knows no rail. */
export interface ToolProtocol {
  /** Returns the presented payment. Throws PaymentRefused when the value is no valid payment of this protocol. */
  read(payment: unknown): Credential;
  prepare(endpoint: Endpoint<never>, tool: SoldTool): ToolDemand;
}
