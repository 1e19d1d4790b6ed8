import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, KEEP_MS, provenance, untilWritten } from './freshness.ts';
import { detailField, paidDetail } from './paid-detail.ts';
import { endpointName, headLagOf, PROBE_WINDOW_SECONDS } from './rpc-fields.ts';
import { rpcHealth } from './rpc-health.ts';

const DETAIL = paidDetail(
  rpcHealth,
  'percentiles of latency, head lag and errors by kind over 15 minutes, the last error, and availability over 1 and 24 hours',
);

const result = z.strictObject({
  endpoints: z
    .array(
      z.strictObject({
        ...endpointName,
        latencyMs: z.number().nullable().meta({ description: 'Of the last answer; null when there was none' }),
        headLagBlocks: z.int().nonnegative().nullable().meta({
          description:
            'Blocks that its head was behind the best one of the same round. Answers of a round are up to a latency apart, in which a block may come',
        }),
        ok: z.boolean().nullable().meta({ description: 'Whether the last probe was answered; null before the first' }),
        checkedAt: atField('Time of that probe').nullable(),
      }),
    )
    .meta({ description: 'Each configured endpoint, asked for its newest block every few seconds; the last probe' }),
  detail: detailField,
  freshness,
  source: sourceSchema,
});

/** The latest results of the RPC endpoints. */
export const rpc = defineEndpoint({
  path: '/rpc',
  access: 'free',
  label: 'RPC endpoints',
  summary: 'Latency and head lag of each RPC endpoint that the service polls.',
  params: z.object({}),
  result,
  cacheMs: KEEP_MS,
  version: untilWritten,
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
