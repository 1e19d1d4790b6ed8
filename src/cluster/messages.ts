import type { SettlingReport } from '../payment/settling.ts';
import type { CollectorStatus } from '../store/chain/collector-status.ts';

/** What a worker knows of the primary: sent at each change, and once a second without one. */
export interface Heartbeat {
  /** Where to listen: the configured port, or the one that was taken for 0. */
  readonly port: number;
  readonly report: SettlingReport;
  readonly collector: CollectorStatus;
}

/** A metric as the registry's JSON has it; only the library looks inside. */
export type MetricJson = object;

/** From the primary to an API process. */
export type ToWorker =
  | { readonly kind: 'heartbeat'; readonly heartbeat: Heartbeat }
  /** These rows have ended, or cannot be brought to an end now. */
  | { readonly kind: 'ended'; readonly ids: readonly string[] }
  | { readonly kind: 'measure'; readonly ask: number }
  /** The whole service's metrics, asked for with `read`; null when they could not be put together. */
  | { readonly kind: 'metrics'; readonly ask: number; readonly text: string | null }
  | { readonly kind: 'stop' };

/** From an API process to the primary. */
export type ToPrimary =
  /** It listens to messages. */
  | { readonly kind: 'hello' }
  /** It serves. */
  | { readonly kind: 'listening' }
  /** Bring these rows to their end. */
  | { readonly kind: 'settle'; readonly ids: readonly string[] }
  | { readonly kind: 'measured'; readonly ask: number; readonly metrics: readonly MetricJson[] }
  | { readonly kind: 'read'; readonly ask: number };
