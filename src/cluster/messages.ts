import type { SettlingReport } from '../payment/settling.ts';
import type { CollectorStatus } from '../store/chain/collector-status.ts';

/** The primary's state for the workers. It is sent at each change, and once a second without a change. */
export interface Heartbeat {
  /** The port to listen on: the configured one, or the free one that was chosen for 0. */
  readonly port: number;
  readonly report: SettlingReport;
  readonly collector: CollectorStatus;
}

/** A metric as the registry's JSON has it; only the library looks inside. */
export type MetricJson = object;

/** From the primary to an API process. */
export type ToWorker =
  | { readonly kind: 'heartbeat'; readonly heartbeat: Heartbeat }
  /** These payments have ended, or cannot end now. */
  | { readonly kind: 'ended'; readonly ids: readonly string[] }
  | { readonly kind: 'measure'; readonly ask: number }
  /** The whole service's metrics, the answer to `read`; null when they could not be aggregated. */
  | { readonly kind: 'metrics'; readonly ask: number; readonly text: string | null }
  | { readonly kind: 'stop' };

/** From an API process to the primary. */
export type ToPrimary =
  /** The worker listens to messages. */
  | { readonly kind: 'hello' }
  /** The worker serves requests. */
  | { readonly kind: 'listening' }
  /** A request to settle these payments. */
  | { readonly kind: 'settle'; readonly ids: readonly string[] }
  | { readonly kind: 'measured'; readonly ask: number; readonly metrics: readonly MetricJson[] }
  | { readonly kind: 'read'; readonly ask: number };
