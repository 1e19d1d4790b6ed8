import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Query } from '../catalogue/params.ts';
import type { PaymentKey } from '../store/ports/sales.ts';
import type { Credential, ProtocolName } from './protocol.ts';
import type { PurchaseRail, SignedPayment } from './rail.ts';

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
