import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { readNewestNumber } from '../chain/block.ts';
import { accountCodeCalls, delegateOf, readAccountCode } from '../chain/contracts.ts';
import { index, quantity, type RpcOutcome, readOutcome, toQuantity } from '../chain/rpc/wire.ts';
import { UpstreamFailed } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatNative } from '../lib/units.ts';
import {
  activityUpTo,
  creationField,
  labelField,
  labelOf,
  placeField,
  proxyField,
  REASONS,
  searchedFields,
  showCreation,
  showProxy,
} from './account-fields.ts';
import { addressField, addressParam, asOfBlock, chainSource, decimal, usdcField } from './chain-fields.ts';
import { missingField, missingWhen } from './missing-field.ts';
import type { Sources } from './sources.ts';
import {
  balanceCalls,
  balancesField,
  NATIVE_NOTE,
  notCollected,
  noteOnNative,
  readWalletTokens,
  showBalances,
  walletTokens,
} from './wallet-balances.ts';

const result = z.strictObject({
  address: addressField('The account, in lower case'),
  type: z.enum(['wallet', 'contract']).meta({
    description: 'contract when it has code; a wallet that delegates by EIP-7702 (23 bytes of code) stays a wallet',
  }),
  usdc: usdcField('Balance through the ERC-20 face of USDC (6 decimals)'),
  nativeUsdc: decimal(
    'Balance of the native currency, the one amount of USDC that is shown with its 18 decimals. On Arc it is the same money as `usdc`: never add both; `note` says so, or that this chain keeps them apart',
  ),
  projectToken: z
    .strictObject({
      address: addressField('Contract of the token'),
      symbol: z.string().nullable().meta({ description: 'As the contract says; null when it says none' }),
      balance: decimal('In whole tokens').nullable().meta({ description: 'null when the contract does not answer' }),
    })
    .nullable()
    .meta({ description: "Balance of this service's project token; null when none is configured" }),
  note: z.string().meta({ description: 'How usdc and nativeUsdc are related, for a reader without this schema' }),
  balances: balancesField,
  transactionsSent: z.int().nonnegative().meta({
    description: 'The account nonce: transactions sent by a wallet, or contracts created by a contract',
  }),
  nonce: z.int().nonnegative().meta({ description: 'The same, under its own name: the nonce of its next transaction' }),
  isContract: z.boolean().meta({ description: 'Whether `type` is contract' }),
  codeBytes: z.int().nonnegative().meta({ description: 'Length of its code' }),
  label: labelField,
  proxy: proxyField,
  creation: creationField,
  activity: z
    .strictObject({
      first: placeField('Its first transaction in those blocks').nullable(),
      last: placeField('Its newest transaction in those blocks').nullable(),
      ...searchedFields,
      complete: z.boolean().meta({
        description:
          'false when one may be missing: the blocks after `until` up to `asOfBlock` are not collected yet, or more accounts were active in an hour than this service keeps',
      }),
    })
    .nullable()
    .meta({
      description:
        'Transactions that it sent, that were addressed to it, or that created it, failed ones too, in the collected blocks; first and last are null without one. Transfers that another contract makes are not among them: for the watched tokens see lastMovedAt',
    }),
  missing: missingField,
  asOfBlock,
  source: sourceSchema,
});

/** One account's balances and kind. */
export const chainWallet = defineEndpoint({
  path: '/chain/wallet',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Wallet',
  summary: 'USDC and token balances, transactions sent, label, proxy and last activity of a wallet address.',
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
      note: NATIVE_NOTE,
      balances: [
        {
          ...{ address: '0x3600000000000000000000000000000000000000', symbol: 'USDC', decimals: 6 },
          ...{ balance: '9871.402166', balanceRaw: '9871402166', lastMovedAt: null },
        },
        {
          ...{ address: '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1', symbol: 'EURC', decimals: 6 },
          ...{ balance: '250', balanceRaw: '250000000', lastMovedAt: 1795198800 },
        },
      ],
      transactionsSent: 214,
      nonce: 214,
      isContract: false,
      codeBytes: 0,
      label: null,
      proxy: null,
      creation: null,
      activity: {
        ...{ first: { block: 31809601, at: 1794979201 }, last: { block: 32249990, at: 1795199395 } },
        ...{ since: { block: 31731601, at: 1794940001 }, until: { block: 32250000, at: 1795199401 } },
        complete: true,
      },
      missing: [notCollected(['0x3600000000000000000000000000000000000000'])],
      asOfBlock: 32250000,
      source: { name: 'JSON-RPC of eip155:5042', url: 'https://rpc.mainnet.arc.io', retrievedAt: 1795199401 },
    },
  },
  async run({ address }, sources: Sources, signal) {
    const { chain, clock, reads, projectToken } = sources;
    const block = await readNewestNumber(chain);
    const tokens = walletTokens(sources);
    const own = accountCalls(address, block);
    const ofCode = accountCodeCalls(address, block);
    const calls = [...own, ...ofCode, ...balanceCalls(tokens, address, block)];
    const [outcomes, metadata] = await Promise.all([
      chain.batch(calls, { signal }),
      readWalletTokens(chain, tokens, block, { signal }),
    ]);
    const behindCode = own.length + ofCode.length;
    const held = outcomes.slice(behindCode);
    const { balances, missing } = showBalances(sources, address, tokens, held, metadata);
    const [usdc] = balances;
    // The USDC balance is what the buyer pays for. Without it the call fails and charges nothing.
    if (!usdc?.balance) throw new UpstreamFailed('chain', 'the USDC contract gave no balance');
    const { code, proxy } = await readAccountCode(chain, outcomes.slice(own.length, behindCode), block, { signal });
    if (code === null) throw new UpstreamFailed('chain', 'no node gave the code of the account');
    const isContract = code !== '0x' && delegateOf(code) === null;
    const created = isContract ? reads.creationOf(address) : null;
    const activity = activityUpTo(block, reads.activityOf(address));
    return {
      address,
      type: isContract ? ('contract' as const) : ('wallet' as const),
      usdc: usdc.balance,
      ...readAccount(outcomes, usdc.balanceRaw),
      balances,
      projectToken: projectToken === null ? null : showProject(balances, projectToken),
      isContract,
      codeBytes: code.length / 2 - 1,
      label: labelOf(sources, address),
      proxy: showProxy(sources, proxy),
      creation: showCreation(created),
      activity,
      missing: [
        ...missing,
        ...missingWhen([
          [proxy === undefined, 'proxy', REASONS.noStorage],
          [isContract && created === null, 'creation', REASONS.notCreatedHere],
          [activity === null, 'activity', REASONS.nothingCollected],
          [activity !== null && activity.until.block < block, 'activity', REASONS.notCollectedYet],
        ]),
      ],
      asOfBlock: block,
      source: chainSource(chain, clock),
    };
  },
});

function accountCalls(address: string, block: number) {
  const at = toQuantity(block);
  return [
    { method: 'eth_getBalance', params: [address, at] },
    { method: 'eth_getTransactionCount', params: [address, at] },
  ];
}

function readAccount([balance, count]: readonly RpcOutcome[], usdcRaw: string | null) {
  const nonce = readOutcome(count, index, 'nonce');
  const native = readOutcome(balance, quantity, 'balance');
  return { nativeUsdc: formatNative(native), note: noteOnNative(native, usdcRaw), transactionsSent: nonce, nonce };
}

/** The project's token, which is among the balances. */
function showProject(balances: z.output<typeof balancesField>, projectToken: string) {
  const address = projectToken.toLowerCase();
  const held = balances.find((balance) => balance.address === address);
  return { address, symbol: held?.symbol ?? null, balance: held?.balance ?? null };
}
