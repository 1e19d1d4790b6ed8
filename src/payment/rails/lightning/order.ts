import type { Endpoint } from '../../../catalogue/endpoint.ts';
import type { RequestBinding } from '../../lnbtc/binding.ts';

/** A request for a priced endpoint on this rail, with parsed parameters. */
export interface LightningOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** The resource URL in the challenge: an HTTP request's bound URL (the configured origin and the raw target), or a tool's address. */
  readonly url: string;
  readonly binding: RequestBinding;
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  readonly client: string;
  /**
   * Identifies the client that asks for an offer: its address, or a random value where only a proxy's address is known. Null for a tool call, whose offer
   * is never given out twice.
   */
  readonly identity: string | null;
  /** Aborts when the buyer's connection closes. */
  readonly signal: AbortSignal;
}
