import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { sourceSchema } from '../lib/source.ts';
import { DEPLOYS_NOTE, deployField, EXAMPLE_DEPLOY, showDeploy } from './deploy-fields.ts';
import { deploysHistory } from './deploys-history.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, KEEP_MS, provenance, untilWritten } from './freshness.ts';
import { detailField, paidDetail } from './paid-detail.ts';

const DETAIL = paidDetail(
  deploysHistory,
  'every collected deploy page by page, by deployer and kind, with code hashes and how many others have the same code, and how many there were by how many accounts in each hour',
);

/** The newest contracts. */
export const deploys = defineEndpoint({
  path: '/deploys',
  access: 'free',
  label: 'Deploys',
  summary: 'The most recent contract deploys.',
  params: z.object({
    limit: integerParam({ min: 1, max: 200, default: 50, description: 'How many, newest first' }),
  }),
  result: z.strictObject({
    deploys: z.array(deployField).meta({ description: DEPLOYS_NOTE }),
    detail: detailField,
    freshness,
    source: sourceSchema,
  }),
  cacheMs: KEEP_MS,
  version: untilWritten,
  example: { params: { limit: '1' }, result: { deploys: [EXAMPLE_DEPLOY], detail: DETAIL, ...EXAMPLE_PROVENANCE } },
  async run({ limit }, sources: Collected) {
    return { deploys: sources.reads.deploys(limit).map(showDeploy), detail: DETAIL, ...provenance(sources) };
  },
});
