import { z } from 'zod';
import { type Proxy as ChainProxy, knownContract } from '../../chain/contracts.ts';
import type { AccountActivity, ContractCreation } from '../../collector/store/accounts.ts';
import { field } from '../fields.ts';
import type { Sources } from '../sources.ts';

// What `chain/wallet` and `chain/token` say of an account, and the blocks that were searched for what it did.

export const placeField = (description: string) =>
  field.object(description, { block: z.int().nonnegative(), at: field.at('Time of the block') });

export const searchedFields = {
  since: placeField('The first block that was searched; what is older is not in here'),
  until: placeField('The last block that was searched'),
};

export const labelField = field.textOrNull(
  'What it is known as: the name of a known contract, else what a contract that was created within the collected ' +
    'blocks seemed to be (not proof of anything); null for any other account',
);

export const proxyField = field.objectOrNull(
  'The account whose code it runs, by its own code (EIP-1167 minimal proxy, EIP-7702 delegation of a wallet) or ' +
    'by a storage slot, into which a contract may write anything. null when it is no such proxy',
  {
    standard: z.enum(['EIP-7702', 'EIP-1167', 'EIP-1967', 'EIP-1967 beacon', 'ZeppelinOS']),
    target: field.orNull(
      'null when its beacon names none, or no node could ask it',
      field.address('Whose code it runs'),
    ),
    targetLabel: labelField,
    beacon: field.orNull(
      'null without a beacon',
      field.address('The contract that names the target to all its proxies'),
    ),
  },
);

export const creationField = field.objectOrNull(
  'The transaction that created the contract; null for a wallet, and where it is not collected',
  {
    creator: field.address('Sender of the transaction'),
    transaction: field.hash('The transaction'),
    block: z.int().nonnegative(),
    at: field.at('Time of the block'),
  },
);

export const REASONS = {
  nothingCollected: 'this service has collected nothing yet',
  notCollectedYet: 'the blocks after `until` up to `asOfBlock` are not collected yet: ask again in a moment',
  notCreatedHere:
    'not among the collected creations: it is older than the collected blocks, or another contract’s call created it',
  noStorage: 'no node gave its storage',
  noCode: 'no node gave its code',
};

type Named = Pick<Sources, 'chain' | 'reads'>;

/** A known contract's name, else the label that a collected contract got. */
export function labelOf({ chain, reads }: Named, address: `0x${string}`): string | null {
  return knownContract(chain.chainId, address) ?? reads.creationOf(address)?.label ?? null;
}

export function showProxy(sources: Named, proxy: ChainProxy | null | undefined): z.output<typeof proxyField> {
  return proxy == null
    ? null
    : { ...proxy, targetLabel: proxy.target === null ? null : labelOf(sources, proxy.target) };
}

export function showCreation(created: ContractCreation | null): z.output<typeof creationField> {
  if (created === null) return null;
  const { deployer, transaction, block, at } = created;
  return { creator: deployer, transaction, block, at };
}

/** Not complete unless searched up to the block of the answer: the account may have moved a second ago. */
export function activityUpTo(block: number, activity: AccountActivity | null): AccountActivity | null {
  return activity && { ...activity, complete: activity.complete && activity.until.block >= block };
}
