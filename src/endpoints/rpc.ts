import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { PROBE_ERRORS, type ProbeError, type ProbeTally, type StoredProbe } from '../collector/store/probes.ts';
import { percentileOf } from '../lib/percentile.ts';
import { detailField, field, paidDetail, percentOf, roundTo } from './fields.ts';
import {
  type Collected,
  EXAMPLE_PROVENANCE,
  keptUntilWritten,
  nothingYet,
  provenance,
  provenanceFields,
} from './freshness.ts';

// The chain's RPC providers as the collector's probes see them: each one's last answer (free), its figures (paid).

const count = z.int().nonnegative();

const STATES = ['up', 'lagging', 'down', 'unknown'] as const;

const endpointName = { name: field.text('Its host'), url: field.text('Scheme and host only') };

function availability(span: string) {
  return field.object(`Over the last ${span}; null without any probe`, {
    availablePercent: field.percentOfAll('Probes that were answered, in percent of all'),
    probes: field.count('How many were made, which is fewer when the service did not run'),
  });
}

const PROBE_WINDOW_SECONDS = 900;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const rpcHealth = defineEndpoint({
  path: '/rpc/health',
  access: 'paid',
  priceUsd: '0.0005',
  label: 'RPC health',
  summary:
    'Current state of each RPC provider, latency, head lag and error rates over the last 15 minutes, last error, and ' +
    'availability over 1 and 24 hours.',
  notFor: 'sending JSON-RPC requests',
  tags: 'blockchain node status, down, outage, uptime, fastest provider, monitoring',
  ofChain: true,
  freeSummary: '/v1/rpc',
  params: z.object({}),
  result: z.strictObject({
    windowSeconds: field.count('Over which time the figures are taken'),
    endpoints: z.array(
      z.strictObject({
        ...endpointName,
        latencyMs: field.object('Nearest-rank percentiles of the answered probes; null without any', {
          p50: z.number().nullable(),
          p95: z.number().nullable(),
        }),
        headLagBlocks: field.object('Behind the best head of the same round; null without any', {
          avg: z.number().nullable(),
          max: z.int().nullable(),
        }),
        errorShare: field.numberOrNull('Failed probes by all, 0 to 1; null without any'),
        errorRate: field.numberOrNull('The same, under its old name'),
        errors: field.object(
          'Failed probes by kind; rpcError includes endpoints of another chain, transport HTTP errors',
          { timeout: count, rateLimited: count, rpcError: count, transport: count },
        ),
        probes: count,
        state: z.enum(STATES).meta({
          description:
            'By the last probe. up: answered; lagging: answered, but its head is further behind than ' +
            '`laggingAfterBlocks`; down: not answered; unknown: not probed in the window',
        }),
        checkedAt: field.at('Time of that probe').nullable(),
        lastError: field.objectOrNull('The last failed probe of 24 hours; null: none', {
          error: z.enum(PROBE_ERRORS),
          at: field.at('Time of that probe'),
        }),
        lastHour: availability('hour'),
        last24Hours: availability('24 hours'),
      }),
    ),
    laggingAfterBlocks: field.count(
      'An endpoint is lagging when its head is more blocks than this behind the best one',
    ),
    ...provenanceFields,
  }),
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
          state: 'up',
          checkedAt: 1795199398,
          lastError: { error: 'rateLimited', at: 1795198701 },
          lastHour: { availablePercent: '99.5833', probes: 720 },
          last24Hours: { availablePercent: '99.9769', probes: 17280 },
        },
      ],
      laggingAfterBlocks: 60,
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads, clock, collected } = sources;
    const nowMs = clock.nowMs();
    const since = nowMs - PROBE_WINDOW_SECONDS * 1000;
    const probed = collected.endpoints.map(({ name, url }) => ({ name, url, probes: reads.probes(name, since) }));
    if (probed.every(({ probes }) => probes.length === 0)) throw nothingYet();
    const { lagBlocks } = collected.health;
    return {
      windowSeconds: PROBE_WINDOW_SECONDS,
      endpoints: probed.map(({ name, url, probes }) => {
        const day = reads.probeTally(name, nowMs - DAY_MS, nowMs);
        return {
          name,
          url,
          ...summarise(probes),
          ...currently(probes.at(-1), lagBlocks),
          lastError: day.lastFailure && { error: day.lastFailure.error, at: Math.floor(day.lastFailure.atMs / 1000) },
          lastHour: availabilityOf(reads.probeTally(name, nowMs - HOUR_MS, nowMs)),
          last24Hours: availabilityOf(day),
        };
      }),
      laggingAfterBlocks: lagBlocks,
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
  const errorShare = probes.length === 0 ? null : roundTo(4, failed / probes.length);
  return {
    latencyMs: { p50: percentileOf(latencies, 50), p95: percentileOf(latencies, 95) },
    headLagBlocks: {
      avg: lags.length === 0 ? null : roundTo(4, lags.reduce((sum, lag) => sum + lag, 0) / lags.length),
      max: lags.length === 0 ? null : Math.max(...lags),
    },
    errorShare,
    errorRate: errorShare,
    errors,
    probes: probes.length,
  };
}

function currently(last: StoredProbe | undefined, lagBlocks: number) {
  if (!last) return { state: 'unknown' as const, checkedAt: null };
  const state = !last.ok ? 'down' : (headLagOf(last) ?? 0) > lagBlocks ? 'lagging' : 'up';
  return { state, checkedAt: Math.floor(last.atMs / 1000) } as const;
}

function availabilityOf({ probes, answered }: ProbeTally) {
  return { availablePercent: probes === 0 ? null : percentOf(BigInt(answered), BigInt(probes)), probes };
}

const DETAIL = paidDetail(
  rpcHealth,
  'percentiles of latency, head lag and errors by kind over 15 minutes, the last error, and availability over 1 and ' +
    '24 hours',
);

export const rpc = defineEndpoint({
  path: '/rpc',
  access: 'free',
  label: 'RPC endpoints',
  summary: 'Latency and head lag of each RPC endpoint that the service polls.',
  notFor: 'sending JSON-RPC requests',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    endpoints: field.list('Each configured endpoint, asked for its newest block every few seconds; the last probe', {
      ...endpointName,
      latencyMs: field.numberOrNull('Of the last answer; null when there was none'),
      headLagBlocks: field.countOrNull(
        'Blocks that its head was behind the best one of the same round. Answers of a round are up to a latency ' +
          'apart, in which a block may come',
      ),
      ok: field.booleanOrNull('Whether the last probe was answered; null before the first'),
      checkedAt: field.at('Time of that probe').nullable(),
    }),
    detail: detailField,
    ...provenanceFields,
  }),
  ...keptUntilWritten,
  example: {
    params: {},
    result: {
      endpoints: [
        {
          name: 'rpc.mainnet.arc.io',
          url: 'https://rpc.mainnet.arc.io',
          latencyMs: 41.2,
          headLagBlocks: 0,
          ok: true,
          checkedAt: 1795199398,
        },
      ],
      detail: DETAIL,
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads, clock, collected } = sources;
    const since = clock.nowMs() - PROBE_WINDOW_SECONDS * 1000;
    return {
      endpoints: collected.endpoints.map(({ name, url }) => {
        const last = reads.probes(name, since).at(-1);
        return {
          name,
          url,
          latencyMs: last?.latencyMs ?? null,
          headLagBlocks: last ? headLagOf(last) : null,
          ok: last?.ok ?? null,
          checkedAt: last ? Math.floor(last.atMs / 1000) : null,
        };
      }),
      detail: DETAIL,
      ...provenance(sources),
    };
  },
});

/** Blocks behind the best head of the same round; null when the endpoint reported no head. */
function headLagOf({ head, bestHead }: Pick<StoredProbe, 'head' | 'bestHead'>): number | null {
  return head === null || bestHead === null ? null : Math.max(bestHead - head, 0);
}
