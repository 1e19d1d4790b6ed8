import type { IncomingHttpHeaders } from 'node:http';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';

/** Says what became of the money, to its buyer: the shape is x402's. */
export type Receipt = SettleResponse;

/** A presented payment as its protocol carried it: its form is right, and nothing that it says is checked yet. */
export interface Credential {
  /** The terms that the buyer says it accepted. */
  readonly accepted: Readonly<Record<string, unknown>>;
  /** What pays: its rail reads it. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** What the buyer says beside it, such as a payment identifier. */
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Header fields, in the order in which they go out. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** What a request is told to pay: fields and a body of JSON text. */
export interface Demand {
  readonly fields: Fields;
  readonly body: string;
  readonly contentType: string;
}

/** An offer that was made for one request: its terms, and what they come to. */
export interface Quote {
  readonly requirement: PaymentRequirements;
  /** Decimal strings, USD. */
  readonly priceUsd: string;
  readonly btcUsd: string;
}

/** What a quote is for. */
export interface Quoted {
  readonly endpoint: Endpoint<never>;
  /** The resource as the payment binds it. */
  readonly url: string;
}

/** How a payment is asked for and presented over HTTP. It knows no rail. */
export interface HttpProtocol {
  /** Whether a request presents a payment in this protocol's form. */
  carries(headers: IncomingHttpHeaders): boolean;
  /** The presented payment; throws PaymentRefused for what is no payment of this protocol. */
  read(headers: IncomingHttpHeaders): Credential;
  /** Why a request without a payment is refused, where there is more to say than the price. */
  unpaidReason(headers: IncomingHttpHeaders): string | undefined;
  /** Prepares the demand of an endpoint whose terms are known at start; the function that it returns makes the fields for a request target. */
  prepare(endpoint: Endpoint<never>, accepts: readonly PaymentRequirements[], origin: string): Prepared;
  /** The demand of a quote. Without one, because none could be made after a refusal, nothing is offered. */
  quote(of: Quoted, quote: Quote | null, error?: string): Demand;
  /** The fields of an answer that was paid for, or of a refused settlement. */
  receipt(receipt: Receipt): Fields;
}

/** The demand of an endpoint, made at start but for the request itself. */
export interface Prepared {
  fields(target: string, error?: string): Fields;
  /** What a person reads who asked without a payment. */
  body(query: Readonly<Record<string, unknown>>): string;
}

/** A priced tool as its demand names it. */
export interface SoldTool {
  readonly name: string;
  /** What the payment is for. */
  readonly url: string;
  /** JSON Schema of its arguments. */
  readonly inputSchema: object;
}

/** Makes what a tool call is told to pay; `error` says why, where it is more than that. */
export type ToolDemand = (accepts: readonly PaymentRequirements[], error?: string) => PaymentRequired;

/** How a payment is asked for and presented in a tool call. It knows no rail. */
export interface ToolProtocol {
  /** The presented payment; throws PaymentRefused for what is no payment of this protocol. */
  read(payment: unknown): Credential;
  prepare(endpoint: Endpoint<never>, tool: SoldTool): ToolDemand;
}
