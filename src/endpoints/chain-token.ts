import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { readTokenWithSupply } from '../chain/erc20.ts';
import { readNewestNumber } from '../chain/newest.ts';
import { NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatUnits } from '../lib/units.ts';
import { addressField, addressParam, asOfBlock, bigInteger, chainSource, decimal } from './chain-fields.ts';
import type { Sources } from './sources.ts';

const result = z.strictObject({
  address: addressField('The token contract, in lower case'),
  name: z
    .string()
    .nullable()
    .meta({ description: 'At most 64 characters, control characters removed; not proof of anything' }),
  symbol: z.string().nullable().meta({ description: 'As name' }),
  decimals: z.int().min(0).max(255).nullable().meta({ description: 'null when the contract does not say' }),
  totalSupply: decimal('In whole tokens').nullable().meta({ description: 'In whole tokens; null without decimals' }),
  totalSupplyRaw: bigInteger('In base units'),
  asOfBlock,
  source: sourceSchema,
});

/** The metadata that an ERC-20 contract returns. An address without an ERC-20 contract gets 404, which is never charged. */
export const chainToken = defineEndpoint({
  path: '/chain/token',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Token',
  summary: 'Name, symbol, decimals and total supply of an ERC-20 token at the latest block.',
  params: z.object({ address: addressParam('The token contract') }),
  result,
  example: {
    params: { address: '0xbEf5f6d51CB62b58e6A8f77868681825C6fe21c1' },
    result: {
      address: '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1',
      name: 'EURC',
      symbol: 'EURC',
      decimals: 6,
      totalSupply: '4182733.57',
      totalSupplyRaw: '4182733570000',
      asOfBlock: 32250000,
      source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
    },
  },
  async run({ address }, { chain, clock }: Pick<Sources, 'chain' | 'clock'>, signal) {
    const block = await readNewestNumber(chain);
    const token = await readTokenWithSupply(chain, address, block, { signal });
    if (token === null || token.totalSupply === null || token.isErc721) {
      throw new NotFound(`no ERC-20 token answers at ${address}`);
    }
    const { name, symbol, decimals, totalSupply } = token;
    return {
      address,
      name,
      symbol,
      decimals,
      totalSupply: decimals === null ? null : formatUnits(totalSupply, decimals),
      totalSupplyRaw: totalSupply.toString(),
      asOfBlock: block,
      source: chainSource(chain, clock),
    };
  },
});
