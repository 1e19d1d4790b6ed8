import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import type { Receipt } from './protocol.ts';

// The words of a sale, whatever surface brings it: what the transport asks (`Ask`), what a rail sells (`Call`), and
// what comes out (`Sold`).

/** Where a request came in, as it was received. A Lightning invoice binds all of it. */
export type Target =
  | {
      readonly kind: 'http';
      readonly method: string;
      /** The request target as received. */
      readonly url: string;
      readonly hasBody: boolean;
    }
  | {
      readonly kind: 'mcp';
      /** The server's address. */
      readonly server: string;
      readonly tool: string;
      /** `arguments` and `_meta` as received, not judged yet. */
      readonly arguments: unknown;
      readonly meta: unknown;
    };

/** A request for a priced endpoint. Its functions cost something: an unpaid one in USDC needs none. */
export interface Ask {
  readonly target: Target;
  readonly query: Query;
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  client(): string;
  /** Identifies the client on redelivery. Random where only a proxy's address is known. */
  identity(): string;
  /** Aborts when the buyer's connection closes. */
  signal(): AbortSignal;
}

/** Why an endpoint runs: for a payment, or for an unpaid Lightning offer at one of two ranks of the chain's queue. */
export type RunFor = 'sale' | 'offer' | 'admit';

/** A request as a rail sells it: it sees what the call costs and can run it, and never what it answers from. */
export interface Call {
  readonly target: Target;
  /** For its path, price and texts. Nothing can be run through it. */
  readonly endpoint: Endpoint<never>;
  /** The path under which the ledger keeps its sales, such as `/v1/paid/chain/wallet`. */
  readonly route: string;
  /** USDC base units. */
  readonly price: bigint;
  readonly client: string;
  readonly identity: string;
  readonly signal: AbortSignal;
  /** Parsed and checked once. Throws BadParameter. */
  params(): unknown;
  /** The reply's bytes. Throws what the endpoint throws, UpstreamFailed on a time-out, 499 when `signal` aborts. */
  run(what: RunFor, signal: AbortSignal): Promise<Uint8Array>;
}

/** A sold answer and its receipt. Each delivery of one payment is the same. */
export interface Sold {
  readonly body: Uint8Array;
  readonly receipt: Receipt;
  /** When the money moved, in Unix milliseconds; null where that is not noted. */
  readonly at: number | null;
  /** The transport calls it after the last byte is sent. Absent where the delivery was noted before. */
  onSent?(): Promise<void>;
}
