import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { readNewestNumber } from '../../chain/block.ts';
import { accountCodeCalls, readAccountCode } from '../../chain/contracts.ts';
import { readTokenWithSupply, tokenCalls } from '../../chain/erc20.ts';
import { NotFound } from '../../errors.ts';
import { formatUnits } from '../../lib/units.ts';
import { addressParam, EXAMPLE_READ_AT, field, missingField, missingWhen, readAt, readAtFields } from '../fields.ts';
import { type Collected, EXAMPLE_PROVENANCE, freshness, freshnessOf } from '../freshness.ts';
import { EXAMPLE_FX, EXAMPLE_POOL } from '../fx/fields.ts';
import { marketField, showMarket, uncollectedReason } from '../market-prices.ts';
import type { Sources } from '../sources.ts';
import {
  creationField,
  labelField,
  labelOf,
  proxyField,
  REASONS,
  searchedFields,
  showCreation,
  showProxy,
} from './account-fields.ts';

// An ERC-20 token: what its contract returns at one block, and what the collector knows of it. An address without an
// ERC-20 contract is a 404, which is never charged.

type TokenSources = Collected & Pick<Sources, 'usdc'>;

const EXAMPLE_MARKET = {
  ...EXAMPLE_FX,
  ageSeconds: 6,
  window: { ...EXAMPLE_FX.window, minutes: 1440 },
  change24hPercent: '-0.1823',
  pools: [EXAMPLE_POOL],
  poolsTruncated: false,
};

export const chainToken = defineEndpoint({
  path: '/chain/token',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Token',
  summary: 'Name, symbol, decimals, supply and creator of an ERC-20 token; rate, volume and pools where watched.',
  notFor: 'prices of tokens that are not watched, lists of holders, or NFTs',
  tags: 'coin, token contract, metadata, ticker, erc20 supply',
  ofChain: true,
  params: z.object({ address: addressParam('The token contract') }),
  result: z.strictObject({
    address: field.address('The token contract, in lower case'),
    name: field.textOrNull('At most 64 characters, control characters removed; not proof of anything'),
    symbol: field.textOrNull('As name'),
    decimals: z.int().min(0).max(255).nullable().meta({ description: 'null when the contract does not say' }),
    totalSupply: field.alsoNull('null without decimals', field.decimal('In whole tokens')),
    totalSupplyRaw: field.bigInteger('In base units'),
    codeBytes: field.countOrNull('Length of its code; null when no node gave it'),
    label: labelField,
    proxy: proxyField,
    creation: creationField,
    market: marketField,
    holdersSeen: field.objectOrNull(
      'Accounts that a transfer in the collected blocks moved the token to or from. Who only holds it is not seen, ' +
        'and who was seen may hold none by now. null for a token whose transfers are not collected',
      {
        accounts: field.count('Distinct accounts'),
        ...searchedFields,
        complete: field.boolean('false when there are more than this service keeps'),
      },
    ),
    missing: missingField,
    freshness,
    ...readAtFields,
  }),
  example: {
    params: { address: '0xbEf5f6d51CB62b58e6A8f77868681825C6fe21c1' },
    result: {
      address: '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1',
      name: 'EURC',
      symbol: 'EURC',
      decimals: 6,
      totalSupply: '4182733.57',
      totalSupplyRaw: '4182733570000',
      codeBytes: 1852,
      label: 'EURC',
      proxy: {
        standard: 'ZeppelinOS',
        target: '0x2b1d8a1f1e6f0c6c7d3d9a5b0c4e8f7a6b5c4d3e',
        targetLabel: null,
        beacon: null,
      },
      creation: null,
      market: EXAMPLE_MARKET,
      holdersSeen: {
        accounts: 1204,
        since: { block: 31731601, at: 1794940001 },
        until: { block: 32250000, at: 1795199401 },
        complete: true,
      },
      missing: [{ field: 'creation', reason: REASONS.notCreatedHere }],
      freshness: EXAMPLE_PROVENANCE.freshness,
      ...EXAMPLE_READ_AT,
    },
  },
  async run({ address }, sources: TokenSources, signal) {
    const { chain, clock, collector, reads } = sources;
    const block = await readNewestNumber(chain);
    const code = accountCodeCalls(address, block);
    const outcomes = await chain.batch([...code, ...tokenCalls(address, block)], { signal });
    const token = readTokenWithSupply(address, outcomes.slice(code.length));
    if (token === null || token.totalSupply === null || token.isErc721) {
      throw new NotFound(`no ERC-20 token answers at ${address}`);
    }
    const { name, symbol, decimals, totalSupply } = token;
    const account = await readAccountCode(chain, outcomes.slice(0, code.length), block, { signal });
    const status = collector.status();
    const uncollected =
      uncollectedReason(sources, address) ?? (status.collected === null ? REASONS.nothingCollected : null);
    const market = uncollected === null && status.collected ? showMarket(sources, address, status.collected.at) : null;
    const holdersSeen = uncollected === null ? reads.accountsOfToken(address) : null;
    const created = reads.creationOf(address);
    return {
      address,
      name,
      symbol,
      decimals,
      totalSupply: decimals === null ? null : formatUnits(totalSupply, decimals),
      totalSupplyRaw: totalSupply.toString(),
      codeBytes: account.code && account.code.length / 2 - 1,
      label: labelOf(sources, address),
      proxy: showProxy(sources, account.proxy),
      creation: showCreation(created),
      market,
      holdersSeen,
      missing: missingWhen([
        [account.proxy === undefined, 'proxy', REASONS.noStorage],
        [account.code === null, 'codeBytes', REASONS.noCode],
        [created === null, 'creation', REASONS.notCreatedHere],
        [market === null, 'market', uncollected ?? REASONS.nothingCollected],
        [holdersSeen === null, 'holdersSeen', uncollected ?? REASONS.nothingCollected],
      ]),
      freshness: freshnessOf(status, clock),
      ...readAt(block, sources),
    };
  },
});
