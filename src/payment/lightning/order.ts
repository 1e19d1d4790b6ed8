import type { Endpoint } from '../../catalogue/endpoint.ts';
import type { Binding } from './binding.ts';

/** A request for a priced endpoint on this rail, its parameters judged. */
export interface LightningOrder<S> {
  readonly endpoint: Endpoint<S>;
  readonly params: unknown;
  /** The bound URL: the configured origin and the raw target. */
  readonly url: string;
  readonly binding: Binding;
  /** Who asks, as rate limits see it. */
  readonly client: string;
  /** Aborts when the buyer's connection is gone. */
  readonly signal: AbortSignal;
}
