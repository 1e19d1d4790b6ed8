import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { headerCall, readHeader } from '../chain/block.ts';
import { readTokens } from '../chain/erc20.ts';
import type { ChainClient, RpcOptions } from '../chain/rpc/client.ts';
import { kindOf, type Receipt, readTransaction } from '../chain/transaction.ts';
import { ARC_SYSTEM_ADDRESS, decodeTransfers, type Transfer } from '../chain/transfers.ts';
import { NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatCost, formatUnits, formatUsdc, NATIVE_DECIMALS } from '../lib/units.ts';
import {
  addressField,
  asOfBlock,
  atField,
  bigInteger,
  chainSource,
  decimal,
  hashField,
  hashParam,
  usdcField,
} from './chain-fields.ts';
import type { Sources } from './sources.ts';

/** Bounds the token reads that one call may cause. A usual payment, swap or airdrop has far fewer transfers. */
const MAX_TRANSFERS = 200;

const transfer = z.strictObject({
  token: addressField(`Emitter of the log; ${ARC_SYSTEM_ADDRESS} is Arc's native USDC (18 decimals)`),
  symbol: z
    .string()
    .nullable()
    .meta({ description: 'As the contract says, not proof of anything; null when it says none' }),
  decimals: z.int().nullable().meta({ description: 'null when the contract does not say' }),
  from: addressField('Sender; the zero address when minted'),
  to: addressField('Recipient; the zero address when burned'),
  amount: decimal('In whole tokens').nullable().meta({ description: 'In whole tokens; null without decimals' }),
  amountRaw: bigInteger('In base units'),
  logIndex: z.int().nonnegative().meta({ description: 'Position of the log in its block' }),
});

const result = z.strictObject({
  hash: hashField('The transaction, in lower case'),
  status: z.enum(['pending', 'success', 'reverted']),
  block: z.int().nullable().meta({ description: 'null while pending' }),
  at: atField('Time of the block').nullable().meta({ description: 'Unix seconds of the block; null while pending' }),
  from: addressField('Sender'),
  to: addressField('Recipient').nullable().meta({ description: 'null when it creates a contract' }),
  contractCreated: addressField('The new contract').nullable().meta({ description: 'null when it created none' }),
  kind: z.enum(['deploy', 'nativeTransfer', 'tokenTransfer', 'contractCall']).meta({
    description: 'No recipient; no input; input calls a transfer of ERC-20 or EIP-3009; anything else',
  }),
  valueUsdc: usdcField('Native value sent along, in USDC, rounded to six decimals'),
  valueWei: bigInteger('The same, exact, in 10^-18 USDC'),
  gasUsed: z.int().nullable().meta({ description: 'null while pending' }),
  feeUsdc: usdcField('Fee in USDC')
    .nullable()
    .meta({ description: 'Gas used at its price in USDC, rounded up to six decimals; null while pending' }),
  feeWei: bigInteger('The same, exact, in 10^-18 USDC').nullable(),
  transfers: z.array(transfer).meta({
    description:
      "Every ERC-20 movement, each once: where Arc logs one USDC movement twice, the token's own log is listed. ERC-721 is left out",
  }),
  transfersTruncated: z.boolean().meta({ description: `true when there are more than the ${MAX_TRANSFERS} listed` }),
  asOfBlock,
  source: sourceSchema,
});

/** One transaction and what it moved. */
export const chainTx = defineEndpoint({
  path: '/chain/tx',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Transaction',
  summary:
    'Status, sender, recipient, fee in USDC and every ERC-20 transfer of a transaction, with symbols and human-readable amounts.',
  params: z.object({ hash: hashParam('The transaction hash') }),
  result,
  example: {
    params: { hash: `0x${'3e'.repeat(32)}` },
    result: {
      hash: `0x${'3e'.repeat(32)}`,
      status: 'success',
      block: 32249990,
      at: 1795199395,
      from: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
      to: '0x3600000000000000000000000000000000000000',
      contractCreated: null,
      kind: 'tokenTransfer',
      valueUsdc: '0',
      valueWei: '0',
      gasUsed: 51000,
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
      asOfBlock: 32250000,
      source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
    },
  },
  async run({ hash }, { chain, clock, usdc }: Pick<Sources, 'chain' | 'clock' | 'usdc'>, signal) {
    const read = await readTransaction(chain, hash, { signal });
    if (read === null) throw new NotFound(`the chain knows no transaction ${hash}`);
    const { transaction, receipt, head } = read;
    const moved = receipt === null ? [] : decodeTransfers(receipt.logs, usdc);
    const listed = moved.slice(0, MAX_TRANSFERS);
    const [mined, transfers] = await Promise.all([
      describeMining(chain, receipt, { signal }),
      describeTransfers(chain, listed, head, { signal }),
    ]);
    return {
      hash,
      ...mined,
      from: transaction.from,
      to: transaction.to ?? null,
      kind: kindOf(transaction),
      valueUsdc: formatUsdc(transaction.value, NATIVE_DECIMALS),
      valueWei: transaction.value.toString(),
      transfers,
      transfersTruncated: moved.length > listed.length,
      asOfBlock: head,
      source: chainSource(chain, clock),
    };
  },
});

const PENDING = {
  status: 'pending' as const,
  block: null,
  at: null,
  contractCreated: null,
  gasUsed: null,
  feeUsdc: null,
  feeWei: null,
};

async function describeMining(chain: ChainClient, receipt: Receipt | null, options: RpcOptions) {
  if (receipt === null) return PENDING;
  const { blockNumber, status, gasUsed, effectiveGasPrice, contractAddress } = receipt;
  const [outcome] = await chain.batch([headerCall(blockNumber)], options);
  const fee = BigInt(gasUsed) * effectiveGasPrice;
  return {
    status: status === '0x1' ? ('success' as const) : ('reverted' as const),
    block: blockNumber,
    at: readHeader(outcome, blockNumber).at,
    contractCreated: contractAddress ?? null,
    gasUsed,
    feeUsdc: formatCost(fee),
    feeWei: fee.toString(),
  };
}

async function describeTransfers(
  chain: ChainClient,
  transfers: readonly Transfer[],
  block: number,
  options: RpcOptions,
) {
  const contracts = [...new Set(transfers.map(({ token }) => token))].filter((token) => token !== ARC_SYSTEM_ADDRESS);
  const tokens = new Map((await readTokens(chain, contracts, block, options)).map((token) => [token?.address, token]));
  return transfers.map(({ token, from, to, amount, logIndex }) => {
    const { symbol, decimals } = token === ARC_SYSTEM_ADDRESS ? NATIVE_USDC : (tokens.get(token) ?? UNKNOWN);
    const human = decimals === null ? null : formatUnits(amount, decimals);
    return { token, symbol, decimals, from, to, amount: human, amountRaw: amount.toString(), logIndex };
  });
}

const NATIVE_USDC = { symbol: 'USDC', decimals: NATIVE_DECIMALS };
const UNKNOWN = { symbol: null, decimals: null };
