import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, provenance } from './freshness.ts';

const seconds = (description: string) => z.int().nonnegative().nullable().meta({ description });

const result = z.strictObject({
  status: z.enum(['ok', 'stalled', 'lagging']).meta({
    description:
      'stalled: no head is known, or it has not moved for longer than the threshold; lagging: nothing is collected yet, or the collector is further behind the head than a threshold; ok: neither. Answered with 503 unless ok',
  }),
  thresholds: z.strictObject({
    stalledSeconds: z.int().positive(),
    lagBlocks: z.int().nonnegative(),
    lagSeconds: z.int().nonnegative(),
  }),
  readings: z.strictObject({
    headMovedSecondsAgo: seconds('Since a provider showed a higher block than before; null before the first'),
    headCheckedSecondsAgo: seconds('Since a provider last answered; null before the first in this run'),
    lagBlocks: z.int().nullable().meta({ description: 'As in freshness' }),
    lagSeconds: z.int().nullable().meta({ description: 'As in freshness' }),
    windowCollectedShare: z.number().meta({
      description: 'Share of the window of past blocks that is collected, 0 to 1; does not count towards the status',
    }),
    windowCollected: z.number().meta({ description: 'The same, under its old name' }),
  }),
  freshness,
  source: sourceSchema,
});

/** Whether the collected data are current. */
export const health = defineEndpoint({
  path: '/health',
  access: 'free',
  label: 'Health',
  summary: 'Service health; 503 with the same body when the collector is stalled or lagging behind the chain head.',
  params: z.object({}),
  result,
  reportsFault: ({ status }) => status !== 'ok',
  example: {
    params: {},
    result: {
      status: 'ok',
      thresholds: { stalledSeconds: 30, lagBlocks: 60, lagSeconds: 30 },
      readings: {
        ...{ headMovedSecondsAgo: 0, headCheckedSecondsAgo: 0, lagBlocks: 0, lagSeconds: 0 },
        ...{ windowCollectedShare: 1, windowCollected: 1 },
      },
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Pick<Collected, 'chain' | 'clock' | 'collector' | 'collected'>) {
    const { clock, collector, collected } = sources;
    const { headAdvancedMs, headCheckedMs, head, backfill } = collector.status();
    const current = provenance(sources);
    const { lagBlocks, lagSeconds } = current.freshness;
    const since = (ms: number | null) => (ms === null ? null : Math.max(Math.floor((clock.nowMs() - ms) / 1000), 0));
    const windowCollected = Math.round(backfill.share * 1e4) / 1e4;
    const readings = {
      headMovedSecondsAgo: since(headAdvancedMs),
      headCheckedSecondsAgo: since(headCheckedMs),
      lagBlocks,
      lagSeconds,
      windowCollectedShare: windowCollected,
      windowCollected,
    };
    const status = statusOf(head !== null, readings, collected.health);
    return { status, thresholds: { ...collected.health }, readings, ...current };
  },
});

/** Checks in this order: stalled, lagging, ok. Stalled comes first, because the lag means nothing while no provider reports the head. */
function statusOf(
  hasHead: boolean,
  { headMovedSecondsAgo, lagBlocks, lagSeconds }: z.output<typeof result>['readings'],
  limits: z.output<typeof result>['thresholds'],
): z.output<typeof result>['status'] {
  if (!hasHead || headMovedSecondsAgo === null || headMovedSecondsAgo > limits.stalledSeconds) return 'stalled';
  if (lagBlocks === null || lagSeconds === null) return 'lagging';
  return lagBlocks > limits.lagBlocks || lagSeconds > limits.lagSeconds ? 'lagging' : 'ok';
}
