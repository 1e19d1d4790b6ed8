import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { balanceCall, readBalance, readTokens } from '../chain/erc20.ts';
import { readNewestNumber } from '../chain/newest.ts';
import type { ChainClient, RpcOptions } from '../chain/rpc/client.ts';
import { data, index, quantity, readOutcome, toQuantity } from '../chain/rpc/wire.ts';
import { UpstreamFailed } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatNative, formatUnits } from '../lib/units.ts';
import { addressField, addressParam, asOfBlock, chainSource, decimal, usdcField } from './chain-fields.ts';
import type { Sources } from './sources.ts';

/** USDC's ERC-20 interface has 6 decimals; the native balance has 18. */
const USDC_DECIMALS = 6;
/** EIP-7702: the code of a delegating wallet is this prefix and the delegate's address. */
const DELEGATION = /^0xef0100[0-9a-fA-F]{40}$/;

const result = z.strictObject({
  address: addressField('The account, in lower case'),
  type: z.enum(['wallet', 'contract']).meta({
    description: 'contract when it has code; a wallet that delegates by EIP-7702 (23 bytes of code) stays a wallet',
  }),
  usdc: usdcField('Balance through the ERC-20 face of USDC (6 decimals)'),
  nativeUsdc: decimal(
    'Balance of the native currency, the one amount of USDC that is shown with its 18 decimals. On Arc it is the same money as `usdc`: never add both',
  ),
  projectToken: z
    .strictObject({
      address: addressField('Contract of the token'),
      symbol: z.string().nullable().meta({ description: 'As the contract says; null when it says none' }),
      balance: decimal('In whole tokens').nullable().meta({ description: 'null when the contract does not answer' }),
    })
    .nullable()
    .meta({ description: "Balance of this service's project token; null when none is configured" }),
  transactionsSent: z.int().nonnegative().meta({
    description: 'The account nonce: transactions sent by a wallet, or contracts created by a contract',
  }),
  codeBytes: z.int().nonnegative().meta({ description: 'Length of its code' }),
  asOfBlock,
  source: sourceSchema,
});

/** One account's balances and kind. */
export const chainWallet = defineEndpoint({
  path: '/chain/wallet',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Wallet',
  summary: 'USDC and project-token balances, transactions sent and account type of an address at the latest block.',
  params: z.object({ address: addressParam('The account to read') }),
  result,
  example: {
    params: { address: '0x50A2b0B577eC24d7ce1aeD372A8a6fd14CE1bE57' },
    result: {
      address: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
      type: 'wallet',
      usdc: '9871.402166',
      nativeUsdc: '9871.402166913552',
      projectToken: null,
      transactionsSent: 214,
      codeBytes: 0,
      asOfBlock: 32250000,
      source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
    },
  },
  async run({ address }, { chain, clock, usdc, projectToken }: Sources, signal) {
    const block = await readNewestNumber(chain);
    const [account, project] = await Promise.all([
      readAccount(chain, address, usdc, block, { signal }),
      projectToken === null ? null : readHolding(chain, address, lowerCase(projectToken), block, { signal }),
    ]);
    return { address, ...account, projectToken: project, asOfBlock: block, source: chainSource(chain, clock) };
  },
});

async function readAccount(chain: ChainClient, address: string, usdc: string, block: number, options: RpcOptions) {
  const at = toQuantity(block);
  const [native, nonce, code, held] = await chain.batch(
    [
      { method: 'eth_getBalance', params: [address, at] },
      { method: 'eth_getTransactionCount', params: [address, at] },
      { method: 'eth_getCode', params: [address, at] },
      balanceCall(usdc, address, block),
    ],
    options,
  );
  const bytecode = readOutcome(code, data, 'code');
  const balance = readBalance(held);
  // The USDC balance is what the buyer pays for. Without it the call fails and charges nothing.
  if (balance === null) throw new UpstreamFailed('chain', 'the USDC contract gave no balance');
  return {
    type: bytecode === '0x' || DELEGATION.test(bytecode) ? ('wallet' as const) : ('contract' as const),
    usdc: formatUnits(balance, USDC_DECIMALS),
    nativeUsdc: formatNative(readOutcome(native, quantity, 'balance')),
    transactionsSent: readOutcome(nonce, index, 'nonce'),
    codeBytes: bytecode.length / 2 - 1,
  };
}

async function readHolding(
  chain: ChainClient,
  owner: string,
  token: `0x${string}`,
  block: number,
  options: RpcOptions,
) {
  const [[metadata], [held]] = await Promise.all([
    readTokens(chain, [token], block, options),
    chain.batch([balanceCall(token, owner, block)], options),
  ]);
  const balance = readBalance(held);
  const decimals = metadata?.decimals ?? null;
  return {
    address: token,
    symbol: metadata?.symbol ?? null,
    balance: balance === null || decimals === null ? null : formatUnits(balance, decimals),
  };
}

function lowerCase(address: `0x${string}`): `0x${string}` {
  return address.toLowerCase() as `0x${string}`;
}
