import { z } from 'zod';
import { ARC_SYSTEM_ADDRESS } from '../chain/erc20.ts';
import { sourceSchema } from '../lib/source.ts';
import { addressField, asOfBlock, atField, bigInteger, hashField, perGasField, usdcField } from './chain-fields.ts';
import { pendingField } from './tx-pending.ts';
import { swapField } from './tx-swaps.ts';
import { transferField } from './tx-transfers.ts';

/** Bounds the token reads that one call may cause. A usual payment, swap or airdrop has far fewer transfers. */
export const MAX_TRANSFERS = 200;
/** The same for swaps. A route through many pools has some ten. */
export const MAX_SWAPS = 50;

/** What `chain/tx` says of a transaction. */
export const txFields = z.strictObject({
  hash: hashField('The transaction, in lower case'),
  status: z.enum(['pending', 'success', 'reverted']),
  final: z.boolean().meta({
    description:
      'true once it is in a block; Arc’s blocks are final. false while pending: it may still succeed, revert, be replaced or be dropped, so ask again before relying on it',
  }),
  block: z.int().nullable().meta({ description: 'null while pending' }),
  at: atField('Time of the block').nullable().meta({ description: 'Unix seconds of the block; null while pending' }),
  confirmations: z.int().nonnegative().meta({
    description: 'Blocks from its own to asOfBlock, both counted; 0 while pending. On Arc one is enough',
  }),
  from: addressField('Sender'),
  to: addressField('Recipient').nullable().meta({ description: 'null when it creates a contract' }),
  toLabel: z
    .string()
    .nullable()
    .meta({ description: 'Name of the recipient, where it is a contract that we know; null: unknown' }),
  contractCreated: addressField('The new contract').nullable().meta({ description: 'null when it created none' }),
  kind: z.enum(['deploy', 'nativeTransfer', 'tokenTransfer', 'contractCall']).meta({
    description: 'No recipient; no input; input calls a transfer of ERC-20 or EIP-3009; anything else',
  }),
  method: z
    .strictObject({
      selector: z
        .string()
        .regex(/^0x[0-9a-f]{8}$/)
        .meta({ description: 'The first four bytes of its input' }),
      name: z.string().nullable().meta({ description: 'Of the function; null for one that we do not know' }),
      signature: z.string().nullable().meta({
        description: 'Name and types of the function with this selector; a contract may give it another meaning',
      }),
    })
    .nullable()
    .meta({
      description: 'The function that it calls; null without one: it deploys, or has less than four bytes of input',
    }),
  nonce: z.int().nonnegative().meta({ description: 'Its number among the transactions of the sender, from 0' }),
  valueUsdc: usdcField('Native value sent along, in USDC, rounded to six decimals'),
  valueWei: bigInteger('The same, exact, in 10^-18 USDC'),
  gasLimit: z.int().nonnegative().meta({ description: 'The most gas that it may use' }),
  gasUsed: z.int().nullable().meta({ description: 'null while pending' }),
  maxFeePerGas: perGasField('The most that it pays for a unit of gas: its maximum, or its gas price'),
  maxPriorityFeePerGas: perGasField('The tip that it offers')
    .nullable()
    .meta({ description: 'The tip that it offers; null for one with a gas price in place of a maximum' }),
  gasPrice: perGasField('Paid for a unit of gas: base fee and tip')
    .nullable()
    .meta({ description: 'Paid for a unit of gas: base fee and tip; null while pending' }),
  tip: perGasField('The part of gasPrice above its block’s base fee')
    .nullable()
    .meta({ description: 'The part of gasPrice above its block’s base fee; null while pending' }),
  feeUsdc: usdcField('Fee in USDC')
    .nullable()
    .meta({ description: 'Gas used at its price in USDC, rounded up to six decimals; null while pending' }),
  feeWei: bigInteger('The same, exact, in 10^-18 USDC').nullable(),
  transfers: z.array(transferField).meta({
    description:
      "Every ERC-20 movement, each once: where Arc logs one USDC movement twice, the token's own log is listed. ERC-721 is left out",
  }),
  transfersTruncated: z.boolean().meta({ description: `true when there are more than the ${MAX_TRANSFERS} listed` }),
  swaps: z.array(swapField).meta({
    description: `Exchanges in pools, by their Swap events (Uniswap v2, v3, v4 and alike). A token of ${ARC_SYSTEM_ADDRESS} is native USDC`,
  }),
  swapsTruncated: z.boolean().meta({ description: `true when there are more than the ${MAX_SWAPS} listed` }),
  pending: pendingField,
  explorerUrl: z.string().nullable().meta({ description: 'The transaction at the chain’s explorer; null without one' }),
  asOfBlock,
  source: sourceSchema,
});

/** A payment of 12.5 USDC. */
export const EXAMPLE_TX: z.output<typeof txFields> = {
  hash: `0x${'3e'.repeat(32)}`,
  status: 'success',
  final: true,
  block: 32249990,
  at: 1795199395,
  confirmations: 11,
  from: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
  to: '0x3600000000000000000000000000000000000000',
  toLabel: 'USDC',
  contractCreated: null,
  kind: 'tokenTransfer',
  method: { selector: '0xa9059cbb', name: 'transfer', signature: 'transfer(address,uint256)' },
  nonce: 213,
  valueUsdc: '0',
  valueWei: '0',
  gasLimit: 65000,
  gasUsed: 51000,
  maxFeePerGas: { wei: '30130000000', gwei: '30.13' },
  maxPriorityFeePerGas: { wei: '10000000', gwei: '0.01' },
  gasPrice: { wei: '20130000000', gwei: '20.13' },
  tip: { wei: '10000000', gwei: '0.01' },
  feeUsdc: '0.001027',
  feeWei: '1026630000000000',
  transfers: [
    {
      token: '0x3600000000000000000000000000000000000000',
      symbol: 'USDC',
      decimals: 6,
      from: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
      to: '0xca11bde05977b3631167028862be2a173976ca11',
      amount: '12.5',
      amountRaw: '12500000',
      logIndex: 18,
    },
  ],
  transfersTruncated: false,
  swaps: [],
  swapsTruncated: false,
  pending: null,
  explorerUrl: `https://explorer.arc.io/tx/0x${'3e'.repeat(32)}`,
  asOfBlock: 32250000,
  source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
};
