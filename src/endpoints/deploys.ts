import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import type { DeployDetail, DeployPlace, DeployReads } from '../collector/store/accounts.ts';
import { DeployKinds } from '../collector/store/rows.ts';
import { NotFound } from '../errors.ts';
import { addressParam, detailField, field, paidDetail } from './fields.ts';
import {
  type Collected,
  EXAMPLE_PROVENANCE,
  keptUntilWritten,
  lastHours,
  provenance,
  provenanceFields,
  soldUntil,
} from './freshness.ts';

// The contracts that transactions created, as collected: pages and the count per hour (paid); the newest (free).

const deployField = z.strictObject({
  address: field.address('The new contract'),
  deployer: field.address('Sender of the transaction'),
  transaction: field.hash('The transaction that created it'),
  block: z.int().nonnegative(),
  at: field.at('Time of the block'),
  codeBytes: field.countOrNull('Length of its code; null until it was read'),
  label: field.textOrNull(
    'What it seems to be: a known contract, the target of a proxy (EIP-1167, EIP-1967), the symbol it answers with ' +
      '(not proof of anything), another contract with the same code',
  ),
});

const EXAMPLE_DEPLOY = {
  address: '0x8f1c2ed1a9a8c5f0a1f8f3a1d0c9b7e6f5a4d3c2',
  deployer: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
  transaction: `0x${'3e'.repeat(32)}`,
  block: 32249990,
  at: 1795199395,
  codeBytes: 2417,
  label: 'token "TRFC"',
};

const deployDetailField = deployField.extend({
  labelState: z.enum(['known', 'unread', 'open', 'none']).meta({
    description:
      'known: there is a label; unread: its code was not read yet, which takes seconds; open: nothing found so far, ' +
      'and it is looked at again until six hours after its creation, because a symbol may be set late; none: nothing ' +
      'found',
  }),
  kinds: field.orNull(
    'token: it reports a symbol; proxy: it runs the code of another contract; empty: neither; null: unread',
    z.array(z.enum(['token', 'proxy'])),
  ),
  codeHash: field.alsoNull('null until it was read, and without code', field.hash('keccak-256 of its code')),
  sameCodeOthers: field.countOrNull('How many other collected contracts have exactly this code; null without codeHash'),
});

const EXAMPLE_DEPLOY_DETAIL: z.output<typeof deployDetailField> = {
  ...EXAMPLE_DEPLOY,
  labelState: 'known',
  kinds: ['token'],
  codeHash: `0x${'c0'.repeat(32)}`,
  sameCodeOthers: 12,
};

const DEPLOYS_NOTE =
  'Contracts created by a transaction without a recipient, newest first; creations inside other calls are not seen';

const CURSOR = /^(\d{1,15})-(0x[0-9a-f]{64})$/;

const cursorParam = z
  .string()
  .regex(CURSOR, 'the nextCursor of an earlier answer')
  .transform((text): DeployPlace => {
    const [, block = '', transaction = ''] = CURSOR.exec(text) ?? [];
    return { block: Number(block), transaction: transaction as `0x${string}` };
  })
  .optional()
  .meta({ description: 'nextCursor of the answer before: the deploys after it, with the same filters' });

function showCursor({ block, transaction }: DeployPlace): string {
  return `${block}-${transaction}`;
}

export const deploysHistory = defineEndpoint({
  path: '/deploys/history',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Deploys, history',
  summary:
    'Contract deploys with labels, kinds and code hashes, by deployer and kind and page by page, and how many there ' +
    'were in each of the last 24 hours.',
  notFor: 'contract source code or audits',
  tags: 'new smart contracts, created, launched, deployed, deployers, today, recently',
  ofChain: true,
  freeSummary: '/v1/deploys',
  params: z.object({
    limit: integerParam({ min: 1, max: 1000, default: 200, description: 'How many deploys, newest first' }),
    deployer: addressParam('Only contracts that this account created').optional(),
    kind: z
      .enum(['token', 'proxy', 'other'], { error: 'one of token, proxy, other' })
      .optional()
      .meta({
        description:
          'Only tokens, only proxies, or only contracts that are neither. A contract whose code is not read yet ' +
          '(labelState unread) is in none of them',
      }),
    cursor: cursorParam,
  }),
  result: z.strictObject({
    deploys: z.array(deployDetailField).meta({ description: DEPLOYS_NOTE }),
    nextCursor: field.textOrNull('The cursor of the next page; null: nothing older is collected'),
    completeSince: field.objectOrNull('From this block on every deploy is collected; older ones are there in part', {
      block: field.count('Number of the block'),
      at: field.at('Time of the block'),
    }),
    hours: field.list(
      'The last 24 hours of the clock, oldest first, the current one included, whatever the filters; hours ' +
        'without a counted block are left out',
      {
        at: field.at('Beginning of the hour'),
        deploys: field.count('Contracts that were created'),
        deployers: field.count('Distinct accounts that created one'),
      },
    ),
    ...provenanceFields,
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
    return {
      deploys: showDeploys(page, reads),
      nextCursor: last !== undefined && found.length > limit ? showCursor(last) : null,
      completeSince: reads.deploysSince(),
      hours: lastHours(sources, until)
        .filter(({ counted }) => counted > 0)
        .map(({ at, created, deployers }) => ({ at, deploys: created, deployers })),
      ...provenance(sources),
    };
  },
});

/** Counts each code once, so that a page costs at most one walk through its index. */
function showDeploys(
  deploys: readonly DeployDetail[],
  reads: Pick<DeployReads, 'countWithCode'>,
): z.output<typeof deployDetailField>[] {
  const hashes = new Set(deploys.map(({ codeHash }) => codeHash).filter((hash) => hash !== null));
  const counts = new Map([...hashes].map((hash) => [hash, reads.countWithCode(hash)]));
  return deploys.map(({ codeHash, kinds, lookAt, ...deploy }) => ({
    ...deploy,
    labelState: stateOf({ ...deploy, lookAt }),
    kinds: kinds === null ? null : showKinds(kinds),
    codeHash,
    sameCodeOthers: codeHash === null ? null : (counts.get(codeHash) ?? 1) - 1,
  }));
}

function stateOf({ label, codeBytes, lookAt }: Pick<DeployDetail, 'label' | 'codeBytes' | 'lookAt'>) {
  if (label !== null) return 'known';
  if (codeBytes === null) return 'unread';
  return lookAt === null ? 'none' : 'open';
}

function showKinds(kinds: number) {
  return (['token', 'proxy'] as const).filter((kind) => (kinds & DeployKinds[kind]) !== 0);
}

const DETAIL = paidDetail(
  deploysHistory,
  'every collected deploy page by page, by deployer and kind, with code hashes and how many others have the same ' +
    'code, and how many there were by how many accounts in each hour',
);

export const deploys = defineEndpoint({
  path: '/deploys',
  access: 'free',
  label: 'Deploys',
  summary: 'The most recent contract deploys.',
  notFor: 'contract source code or audits',
  tags: null,
  ofChain: true,
  params: z.object({
    limit: integerParam({ min: 1, max: 200, default: 50, description: 'How many, newest first' }),
  }),
  result: z.strictObject({
    deploys: z.array(deployField).meta({ description: DEPLOYS_NOTE }),
    detail: detailField,
    ...provenanceFields,
  }),
  ...keptUntilWritten,
  example: { params: { limit: '1' }, result: { deploys: [EXAMPLE_DEPLOY], detail: DETAIL, ...EXAMPLE_PROVENANCE } },
  async run({ limit }, sources: Collected) {
    return { deploys: sources.reads.deploys(limit), detail: DETAIL, ...provenance(sources) };
  },
});
