import { z } from 'zod';
import type { StoredProbe } from '../collector/store/probes.ts';

/** The time span of latencies, lags and error shares, in seconds. */
export const PROBE_WINDOW_SECONDS = 900;

export const endpointName = {
  name: z.string().meta({ description: 'Its host' }),
  url: z.string().meta({ description: 'Scheme and host only' }),
};

/** Blocks behind the best head of the same probe round; null when the endpoint reported no head. */
export function headLagOf({ head, bestHead }: Pick<StoredProbe, 'head' | 'bestHead'>): number | null {
  return head === null || bestHead === null ? null : Math.max(bestHead - head, 0);
}
