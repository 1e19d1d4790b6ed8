import { z } from 'zod';
import type { Deploy } from '../collector/store/deploys.ts';
import { addressField, atField, hashField } from './chain-fields.ts';

/** One created contract. */
export const deployField = z.strictObject({
  address: addressField('The new contract'),
  deployer: addressField('Sender of the transaction'),
  transaction: hashField('The transaction that created it'),
  block: z.int().nonnegative(),
  at: atField('Time of the block'),
  codeBytes: z.int().nonnegative().nullable().meta({ description: 'Length of its code; null until it was read' }),
  label: z.string().nullable().meta({
    description:
      'What it seems to be: a known contract, the target of a proxy (EIP-1167, EIP-1967), the symbol it answers with (not proof of anything), another contract with the same code',
  }),
});

export const DEPLOYS_NOTE =
  'Contracts created by a transaction without a recipient, newest first; creations inside other calls are not seen';

/** Converts a stored row into the published shape. */
export const showDeploy = (deploy: Deploy): z.output<typeof deployField> => deploy;

export const EXAMPLE_DEPLOY = {
  address: '0x8f1c2ed1a9a8c5f0a1f8f3a1d0c9b7e6f5a4d3c2',
  deployer: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
  transaction: `0x${'3e'.repeat(32)}`,
  block: 32249990,
  at: 1795199395,
  codeBytes: 2417,
  label: 'token "TRFC"',
};
