import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import { DEPLOYS_NOTE, deployField, EXAMPLE_DEPLOY, showDeploy } from './deploy-fields.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, provenance, soldUntil } from './freshness.ts';

/** More of the newest contracts, and the count per hour. */
export const deploysHistory = defineEndpoint({
  path: '/deploys/history',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Deploys, history',
  summary: 'Recent contract deploys with labels, and how many there were in each of the last 24 hours.',
  freeSummary: '/v1/deploys',
  params: z.object({
    limit: integerParam({ min: 1, max: 1000, default: 200, description: 'How many deploys, newest first' }),
  }),
  result: z.strictObject({
    deploys: z.array(deployField).meta({ description: DEPLOYS_NOTE }),
    hours: z
      .array(
        z.strictObject({
          at: atField('Beginning of the hour'),
          deploys: z.int().nonnegative().meta({ description: 'Contracts that were created' }),
          deployers: z.int().nonnegative().meta({ description: 'Distinct accounts that created one' }),
        }),
      )
      .meta({
        description:
          'The last 24 hours of the clock, oldest first, the current one included; hours without a counted block are left out',
      }),
    freshness,
    source: sourceSchema,
  }),
  example: {
    params: { limit: '1' },
    result: {
      deploys: [EXAMPLE_DEPLOY],
      hours: [{ at: 1795194000, deploys: 214, deployers: 61 }],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run({ limit }, sources: Collected) {
    const until = soldUntil(sources);
    const hours = sources.reads.hours(until - DAY_SECONDS + 3600, until + 1);
    return {
      deploys: sources.reads.deploys(limit).map(showDeploy),
      hours: hours
        .filter(({ counted }) => counted > 0)
        .map(({ at, created, deployers }) => ({ at, deploys: created, deployers })),
      ...provenance(sources),
    };
  },
});
