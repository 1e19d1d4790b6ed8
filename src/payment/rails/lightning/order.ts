import type { Endpoint } from '../../../catalogue/endpoint.ts';
import type { RequestBinding } from '../../lnbtc/binding.ts';

/** A request for a priced endpoint on this rail, its parameters judged. */
export interface LightningOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** What the challenge names: of an HTTP request the bound URL (the configured origin and the raw target), of a tool its address. */
  readonly url: string;
  readonly binding: RequestBinding;
  /** Who asks, as rate limits see it. */
  readonly client: string;
  /** Aborts when the buyer's connection is gone. */
  readonly signal: AbortSignal;
}
