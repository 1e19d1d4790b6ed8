import { z } from 'zod';
import type { DeployDetail, DeployPlace, DeployReads } from '../collector/store/deploys.ts';
import { DeployKinds } from '../collector/store/rows.ts';
import { hashField } from './chain-fields.ts';
import { deployField, EXAMPLE_DEPLOY, showDeploy } from './deploy-fields.ts';

/** One created contract with all that was collected of it. */
export const deployDetailField = deployField.extend({
  labelState: z.enum(['known', 'unread', 'open', 'none']).meta({
    description:
      'known: there is a label; unread: its code was not read yet, which takes seconds; open: nothing found so far, and it is looked at again until six hours after its creation, because a symbol may be set late; none: nothing found',
  }),
  kinds: z
    .array(z.enum(['token', 'proxy']))
    .nullable()
    .meta({
      description:
        'token: it reports a symbol; proxy: it runs the code of another contract; empty: neither; null: unread',
    }),
  codeHash: hashField('keccak-256 of its code')
    .nullable()
    .meta({ description: 'keccak-256 of its code; null until it was read, and without code' }),
  sameCodeOthers: z.int().nonnegative().nullable().meta({
    description: 'How many other collected contracts have exactly this code; null without codeHash',
  }),
});

/** Converts stored rows into the published shape. Each code is counted once, so that a page costs at most one walk through its index. */
export function showDeploys(
  deploys: readonly DeployDetail[],
  reads: Pick<DeployReads, 'countWithCode'>,
): z.output<typeof deployDetailField>[] {
  const hashes = new Set(deploys.map(({ codeHash }) => codeHash).filter((hash) => hash !== null));
  const counts = new Map([...hashes].map((hash) => [hash, reads.countWithCode(hash)]));
  return deploys.map(({ codeHash, kinds, lookAt, ...deploy }) => ({
    ...showDeploy(deploy),
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

const CURSOR = /^(\d{1,15})-(0x[0-9a-f]{64})$/;

/** The place after which the next page begins, as the answer before gave it. */
export const cursorParam = z
  .string()
  .regex(CURSOR, 'the nextCursor of an earlier answer')
  .transform((text): DeployPlace => {
    const [, block = '', transaction = ''] = CURSOR.exec(text) ?? [];
    return { block: Number(block), transaction: transaction as `0x${string}` };
  })
  .optional()
  .meta({ description: 'nextCursor of the answer before: the deploys after it, with the same filters' });

export function showCursor({ block, transaction }: DeployPlace): string {
  return `${block}-${transaction}`;
}

export const EXAMPLE_DEPLOY_DETAIL: z.output<typeof deployDetailField> = {
  ...EXAMPLE_DEPLOY,
  labelState: 'known',
  kinds: ['token'],
  codeHash: `0x${'c0'.repeat(32)}`,
  sameCodeOthers: 12,
};
