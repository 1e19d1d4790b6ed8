import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { percentileOf } from '../lib/percentile.ts';
import { sourceSchema } from '../lib/source.ts';
import type { ProbeError, StoredProbe } from '../store/chain/probe-store.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, nothingYet, provenance } from './freshness.ts';
import { endpointName, headLagOf, PROBE_WINDOW_SECONDS } from './rpc-fields.ts';

const count = z.int().nonnegative();

const result = z.strictObject({
  windowSeconds: count.meta({ description: 'Over which time the figures are taken' }),
  endpoints: z.array(
    z.strictObject({
      ...endpointName,
      latencyMs: z
        .strictObject({ p50: z.number().nullable(), p95: z.number().nullable() })
        .meta({ description: 'Nearest-rank percentiles of the answered probes; null without any' }),
      headLagBlocks: z
        .strictObject({ avg: z.number().nullable(), max: z.int().nullable() })
        .meta({ description: 'Behind the best head of the same round; null without any' }),
      errorShare: z.number().nullable().meta({ description: 'Failed probes by all, 0 to 1; null without any' }),
      errorRate: z.number().nullable().meta({ description: 'The same, under its old name' }),
      errors: z.strictObject({ timeout: count, rateLimited: count, rpcError: count, transport: count }).meta({
        description: 'Failed probes by kind; rpcError includes endpoints of another chain, transport HTTP errors',
      }),
      probes: count,
    }),
  ),
  freshness,
  source: sourceSchema,
});

/** The results of the RPC endpoints over the last minutes. */
export const rpcHealth = defineEndpoint({
  path: '/rpc/health',
  access: 'paid',
  priceUsd: '0.0005',
  label: 'RPC health',
  summary: 'Latency, head lag and error rates of each RPC provider over the last 15 minutes.',
  freeSummary: '/v1/rpc',
  params: z.object({}),
  result,
  example: {
    params: {},
    result: {
      windowSeconds: PROBE_WINDOW_SECONDS,
      endpoints: [
        {
          name: 'rpc.mainnet.arc.io',
          url: 'https://rpc.mainnet.arc.io',
          latencyMs: { p50: 41.2, p95: 96.8 },
          headLagBlocks: { avg: 0.11, max: 2 },
          errorShare: 0.0167,
          errorRate: 0.0167,
          errors: { timeout: 0, rateLimited: 3, rpcError: 0, transport: 0 },
          probes: 180,
        },
      ],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads, clock, collected } = sources;
    const since = clock.nowMs() - PROBE_WINDOW_SECONDS * 1000;
    const probed = collected.endpoints.map(({ name, url }) => ({ name, url, probes: reads.probes(name, since) }));
    if (probed.every(({ probes }) => probes.length === 0)) throw nothingYet();
    return {
      windowSeconds: PROBE_WINDOW_SECONDS,
      endpoints: probed.map(({ name, url, probes }) => ({ name, url, ...summarise(probes) })),
      ...provenance(sources),
    };
  },
});

function summarise(probes: readonly StoredProbe[]) {
  const latencies = probes.flatMap(({ latencyMs }) => latencyMs ?? []);
  const lags = probes.flatMap((probe) => headLagOf(probe) ?? []);
  const errors: Record<ProbeError, number> = { timeout: 0, rateLimited: 0, rpcError: 0, transport: 0 };
  for (const { error } of probes) if (error !== null) errors[error] += 1;
  const failed = probes.filter(({ ok }) => !ok).length;
  const errorShare = probes.length === 0 ? null : rounded(failed / probes.length);
  return {
    latencyMs: { p50: percentileOf(latencies, 50), p95: percentileOf(latencies, 95) },
    headLagBlocks: {
      avg: lags.length === 0 ? null : rounded(lags.reduce((sum, lag) => sum + lag, 0) / lags.length),
      max: lags.length === 0 ? null : Math.max(...lags),
    },
    errorShare,
    errorRate: errorShare,
    errors,
    probes: probes.length,
  };
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
