import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { addressParam, atField } from './chain-fields.ts';
import {
  cursorParam,
  deployDetailField,
  EXAMPLE_DEPLOY_DETAIL,
  showCursor,
  showDeploys,
} from './deploy-detail-fields.ts';
import { DEPLOYS_NOTE } from './deploy-fields.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, provenance, soldUntil } from './freshness.ts';

/** The collected contracts in pages, and the count per hour. */
export const deploysHistory = defineEndpoint({
  path: '/deploys/history',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Deploys, history',
  summary:
    'Contract deploys with labels, kinds and code hashes, by deployer and kind and page by page, and how many there were in each of the last 24 hours.',
  freeSummary: '/v1/deploys',
  params: z.object({
    limit: integerParam({ min: 1, max: 1000, default: 200, description: 'How many deploys, newest first' }),
    deployer: addressParam('Only contracts that this account created').optional(),
    kind: z.enum(['token', 'proxy', 'other'], { error: 'one of token, proxy, other' }).optional().meta({
      description:
        'Only tokens, only proxies, or only contracts that are neither. A contract whose code is not read yet (labelState unread) is in none of them',
    }),
    cursor: cursorParam,
  }),
  result: z.strictObject({
    deploys: z.array(deployDetailField).meta({ description: DEPLOYS_NOTE }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'The cursor of the next page; null: nothing older is collected' }),
    completeSince: z
      .strictObject({
        block: z.int().nonnegative().meta({ description: 'Number of the block' }),
        at: atField('Time of the block'),
      })
      .nullable()
      .meta({ description: 'From this block on every deploy is collected; older ones are there in part' }),
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
          'The last 24 hours of the clock, oldest first, the current one included, whatever the filters; hours without a counted block are left out',
      }),
    freshness,
    source: sourceSchema,
  }),
  example: {
    params: { limit: '1' },
    result: {
      deploys: [EXAMPLE_DEPLOY_DETAIL],
      nextCursor: showCursor({ block: 32249990, transaction: `0x${'3e'.repeat(32)}` }),
      completeSince: { block: 32077200, at: 1795113000 },
      hours: [{ at: 1795194000, deploys: 214, deployers: 61 }],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run({ limit, deployer = null, kind = null, cursor = null }, sources: Collected) {
    const { reads } = sources;
    const until = soldUntil(sources);
    // One more than asked for tells whether there is a next page.
    const found = reads.deployPage({ limit: limit + 1, deployer, kind, after: cursor });
    if (cursor !== null && found.length === 0) throw new NotFound('no deploy after this cursor is collected any more');
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const hours = reads.hours(until - DAY_SECONDS + 3600, until + 1);
    return {
      deploys: showDeploys(page, reads),
      nextCursor: last !== undefined && found.length > limit ? showCursor(last) : null,
      completeSince: reads.deploysSince(),
      hours: hours
        .filter(({ counted }) => counted > 0)
        .map(({ at, created, deployers }) => ({ at, deploys: created, deployers })),
      ...provenance(sources),
    };
  },
});
