import type { IncomingMessage } from 'node:http';
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { referenceLink } from '../catalogue/paths.ts';
import { chainTitle, type NamedChain } from '../lib/service.ts';

// The port between protocols and the core: what a protocol reads from a request (`Credential`), what it makes of an
// offer (`Demand`) and of an outcome (`Receipt`), over HTTP and in a tool call. A protocol knows no rail.

/** Tells the buyer the outcome of the payment, in the shape of x402's SettleResponse. */
export type Receipt = SettleResponse;

/** The protocols by which a payment is asked for and presented, as the ledger keeps them. */
export type ProtocolName = 'x402' | 'l402' | 'mpp';

export type Accepted = Readonly<Record<string, unknown>>;

/** What only the buyer knows of a payment that others may copy: x402's `payment-identifier`, or a challenge's id. */
export interface Identifier {
  /** SHA-256, not salted: it must find its row with any payload. */
  readonly hash: Uint8Array;
  /** Whether it buys one answer, as a challenge does: with another payment, the challenge is used. */
  readonly isSingleUse: boolean;
}

/** A presented payment as its protocol decoded it. Its form is valid; its content is not checked yet. */
export interface Credential {
  readonly protocol: ProtocolName;
  /** Null where the protocol does not repeat the terms: then the payment is for the offered ones. */
  readonly accepted: Accepted | null;
  /** The payment itself. Only a rail reads it. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** The challenge that the payment answers, where the protocol names it. The receipt repeats it. */
  readonly challengeId?: string;
  /** Null without one. Read after the request's parameters. Throws BadParameter for a malformed one. */
  identifier(): Identifier | null;
  /** Throws PaymentRefused unless the challenge is ours, for these terms, open at `now` (Unix seconds). */
  checkChallenge?(requirement: PaymentRequirements, now: number): void;
  readonly answered?: AnsweredChallenge;
}

/** A challenge for an invoice, as a buyer presents it with the invoice's preimage. */
export interface AnsweredChallenge {
  /** Whether we signed it. Else the key changed or a client made it up: only the invoice shows what was asked. */
  readonly isSigned: boolean;
  /** Whether it asks for the payment of this invoice, and for nothing else. */
  isFor(invoice: QuotedInvoice): boolean;
  /** How long after the invoice has expired it may be presented first, in seconds. */
  readonly lateSeconds: number;
}

/** Header fields, in the order in which they go out. An array is sent as one line for each value. */
export type Fields = readonly (readonly [name: string, value: string | readonly string[]])[];

/** The parts of a request that a protocol reads. `rawHeaders` shows lines that `headers` drops. */
export type RequestMessage = Pick<IncomingMessage, 'method' | 'headers' | 'rawHeaders' | 'url'>;

export interface Demand {
  readonly fields: Fields;
  readonly body: string;
  readonly contentType: string;
}

export interface Quote {
  readonly requirement: PaymentRequirements;
  /** Decimal strings in USD: the price, and the rate of one bitcoin. */
  readonly priceUsd: string;
  readonly btcUsd: string;
  readonly invoice: QuotedInvoice;
}

export interface QuotedInvoice {
  /** BOLT11. `paymentHash`: 32 bytes. `payTo`: the node's public key, in hex. `expiresAt`: Unix seconds. */
  readonly text: string;
  readonly paymentHash: Uint8Array;
  readonly amountMsat: bigint;
  readonly payTo: string;
  readonly expiresAt: number;
}

export interface QuoteSubject {
  readonly endpoint: Endpoint<never>;
  /** The resource URL that the payment is bound to. */
  readonly url: string;
  /** What the demand says to people about itself, after the description of what is sold. */
  readonly hint: string;
}

export interface HttpProtocol {
  carries(message: RequestMessage): boolean;
  /** Throws PaymentRefused when the header fields hold no valid payment of this protocol. */
  read(message: RequestMessage): Credential;
  /** Why a request without a payment is refused. Undefined where the price says enough. */
  unpaidReason(message: RequestMessage): string | undefined;
  /** Whether a 402 to this request must have an offer, because the payment's protocol has no 402 without one. */
  needsOffer(message: RequestMessage): boolean;
  /** Null `credential`: it could not be read. `at`: when the money moved, in Unix ms; null for a refused settlement. */
  receipt(receipt: Receipt, credential: Credential | null, at: number | null): Fields;
}

export interface PreparedProtocol extends HttpProtocol {
  prepare(endpoint: Endpoint<never>, accepts: readonly PaymentRequirements[], origin: ServiceOrigin): WriteDemand;
}

export interface ServiceOrigin {
  readonly publicOrigin: string;
  readonly chain: NamedChain;
}

export interface QuotedProtocol extends HttpProtocol {
  /** Null `quote`: none could be made after a refusal, and the demand offers nothing. */
  quote(of: QuoteSubject, quote: Quote | null, error?: string): Demand;
}

/** A scheme of HTTP authentication: asks for an invoice's payment in WWW-Authenticate, gets it in Authorization. */
export interface AuthScheme {
  readonly protocol: ProtocolName;
  /** Its names in Authorization, in lower case. */
  readonly names: readonly string[];
  /** Throws PaymentRefused when an Authorization of this auth scheme holds no valid payment. */
  read(authorization: string): Credential;
  challenge(invoice: QuotedInvoice): string;
  receipt(receipt: Receipt, credential: Credential | null, at: number | null): Fields;
}

interface Requested {
  readonly method: string;
  /** As received. */
  readonly target: string;
  /** What is wrong with its parameters, for people. Null when it can be sold. */
  readonly fault: string | null;
  /** Why its payment was refused, in a sentence. Null for a request without a payment. */
  readonly refusal: string | null;
}

/** `error`: why the request or its payment is refused. `accepts`: instead of the prepared entries, for one buyer. */
export type WriteDemand = (request: Requested, error?: string, accepts?: readonly PaymentRequirements[]) => Demand;

export interface SoldTool {
  readonly name: string;
  readonly url: string;
  readonly inputSchema: object;
}

export type ToolDemand = (accepts: readonly PaymentRequirements[], error?: string) => PaymentRequired;

export interface ToolProtocol {
  /** Throws PaymentRefused when the value is no valid payment of this protocol. */
  read(payment: unknown): Credential;
  prepare(endpoint: Endpoint<never>, tool: SoldTool): ToolDemand;
}

/** Prepares the hint that people read in a 402 of USDC: the fault or what is sold, the price, and what to do next. */
export function createHint(
  { path, summary, price, freeSummary }: Endpoint<never>,
  mount: 'paid' | 'mpp',
  howToPay: string,
  { publicOrigin, chain }: ServiceOrigin,
): (request: Pick<Requested, 'fault' | 'refusal'>) => string {
  const cost = `This answer costs ${price?.usd} USDC on ${chainTitle(chain)}: ${howToPay}`;
  const free = freeSummary ? ` Free summary: GET ${freeSummary}.` : '';
  const terms = `${cost} How to pay: ${publicOrigin}${referenceLink(path, mount)}.${free}`;
  const usual = `${summary} ${terms}`;
  return ({ fault, refusal }) => {
    if (fault === null && refusal === null) return usual;
    return [refusal, fault && wouldBeRefused(fault), terms].filter(Boolean).join(' ');
  };
}

/** `npm run pay` looks for this text before it signs. */
export const WOULD_BE_REFUSED = 'With a payment this request would be a 400';

/** A request without a payment gets its price anyhow. Its client must not learn of a fault after it has signed. */
function wouldBeRefused(fault: string): string {
  return `${fault}. ${WOULD_BE_REFUSED}, uncharged: mend it before you sign.`;
}
