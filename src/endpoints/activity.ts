import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import { DAY_SECONDS } from './fee-fields.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  freshness,
  KEEP_MS,
  provenance,
  untilWritten,
} from './freshness.ts';

const count = (description: string) => z.int().nonnegative().meta({ description });

const result = z.strictObject({
  hours: z
    .array(
      z.strictObject({
        at: atField('Beginning of the hour'),
        blocks: count('Blocks whose transactions were counted'),
        transactions: count('Transactions in them'),
        operations: z
          .strictObject({
            deploy: count('Without a recipient'),
            nativeTransfer: count('Without input'),
            tokenTransfer: count('Calls of a transfer of ERC-20 or EIP-3009'),
            contractCall: count('All others'),
          })
          .meta({ description: 'The transactions by what they do, as their own fields show it' }),
        complete: z.boolean().meta({ description: 'true: the hour is over and every block of it was counted' }),
      }),
    )
    .meta({
      description:
        'The last 24 hours of the clock, oldest first, the current one included; hours without a counted block are left out',
    }),
  freshness,
  source: sourceSchema,
});

/** What happened on the chain, hour by hour. */
export const activity = defineEndpoint({
  path: '/activity',
  access: 'free',
  label: 'Activity',
  summary: 'Blocks, transactions and operations by type for each of the last 24 hours.',
  params: z.object({}),
  result,
  cacheMs: KEEP_MS,
  version: untilWritten,
  example: {
    params: {},
    result: {
      hours: [
        {
          at: 1795194000,
          blocks: 7186,
          transactions: 51_240,
          operations: { deploy: 214, nativeTransfer: 9120, tokenTransfer: 17_406, contractCall: 24_500 },
          complete: true,
        },
      ],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const until = collectedUntil(sources);
    const hours = sources.reads.hours(until - DAY_SECONDS + 3600, until + 1);
    return {
      hours: hours
        .filter(({ counted }) => counted > 0)
        .map((hour) => ({
          at: hour.at,
          blocks: hour.counted,
          transactions: hour.transactions,
          operations: {
            deploy: hour.deploys,
            nativeTransfer: hour.nativeTransfers,
            tokenTransfer: hour.tokenTransfers,
            contractCall: hour.contractCalls,
          },
          complete: hour.complete,
        })),
      ...provenance(sources),
    };
  },
});
