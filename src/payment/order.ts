import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import type { PaymentKey } from '../store/ports/sales.ts';
import type { Authorization } from './authorization.ts';
import type { Credential } from './protocol.ts';
import type { PurchaseRail } from './rail.ts';

/** A request with a payment attached, whatever transport brought it. */
export interface Presentation {
  readonly credential: Credential;
  readonly query: Query;
  /** Who presents it: the client's address as rate limits see it. */
  readonly client: string;
  /** What tells the client from all others on redelivery; of a request whose address is a proxy's, a value that no other request has. */
  readonly identity: string;
  /** Aborts when the buyer's connection is gone. */
  readonly signal: AbortSignal;
}

/** What is being bought and by whom, once the cheap checks have passed. */
export interface Order<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  readonly authorization: Authorization;
  /** Of all that the authorization is. */
  readonly authorizationHash: Uint8Array;
  /** What the request costs, in USDC base units. */
  readonly price: bigint;
  readonly rail: PurchaseRail;
  /** The ledger's key of the authorization on that rail. */
  readonly key: PaymentKey;
  readonly requestHash: Uint8Array;
  /** Who presents it, as limits see it. */
  readonly client: string;
  readonly clientHash: Uint8Array;
  readonly identifierHash: Uint8Array | null;
}
