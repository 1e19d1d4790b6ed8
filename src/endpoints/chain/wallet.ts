import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { readNewestNumber } from '../../chain/block.ts';
import { accountCodeCalls, delegateOf, readAccountCode } from '../../chain/contracts.ts';
import { balanceCall, readBalance, readTokens, type Token } from '../../chain/erc20.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import { index, quantity, type RpcOptions, type RpcOutcome, readOutcome, toQuantity } from '../../chain/rpc/wire.ts';
import { AppError, UpstreamFailed } from '../../errors.ts';
import { formatNative, formatUnits, NATIVE_DECIMALS, USDC_DECIMALS } from '../../lib/units.ts';
import {
  addressParam,
  EXAMPLE_READ_AT,
  field,
  type Missing,
  missingField,
  missingWhen,
  readAt,
  readAtFields,
} from '../fields.ts';
import type { Sources } from '../sources.ts';
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

// An account: what it holds, what it is, and when it was last active. Balances, nonce and code are read in one batch,
// at one block. The USDC balance is what the buyer pays for: without it the call fails and charges nothing.

type Hex = `0x${string}`;

/** An operator's watch list may be long, though usual ones have some five tokens. */
const MAX_TOKENS = 50;

const balancesField = field.list(
  `USDC first, then the project’s token, USYC and the other tokens that this service watches; ${MAX_TOKENS} at ` +
    'most in all',
  {
    address: field.address('Contract of the token'),
    symbol: field.textOrNull('As the contract says, else as this service lists it'),
    decimals: field.integerOrNull('null when the contract does not say'),
    balance: field.alsoNull(
      'null without decimals, or when the contract does not answer',
      field.decimal('In whole tokens'),
    ),
    balanceRaw: field.alsoNull('null when the contract does not answer', field.bigInteger('In base units')),
    lastMovedAt: field.orNull(
      'Unix seconds of the newest collected transfer that moved the token to or from the account; null without ' +
        'one, where more accounts moved the token than are kept (50,000), and for tokens whose transfers are not ' +
        'collected, such as USDC, which `missing` names',
      field.at('The newest collected transfer that moved it to or from the account'),
    ),
  },
);

/** Where the two balances are one, as on Arc. */
const NATIVE_NOTE =
  'nativeUsdc is the same money as usdc: the native currency of the chain is USDC, shown there with its 18 decimals. ' +
  'Never add both.';

const notCollected = (tokens: readonly string[]) => ({
  field: 'balances.lastMovedAt',
  reason: `this service does not collect the transfers of ${tokens.join(', ')}`,
});

export const chainWallet = defineEndpoint({
  path: '/chain/wallet',
  access: 'paid',
  priceUsd: '0.002',
  label: 'Wallet',
  summary: 'USDC and token balances, transactions sent, label, proxy and last activity of a wallet address.',
  notFor: 'tokens that are not watched, NFTs or a list of an address’s transactions',
  tags: 'account balance, holdings, how much USDC somebody has, contract or person, nonce',
  ofChain: true,
  params: z.object({ address: addressParam('The account to read') }),
  result: z.strictObject({
    address: field.address('The account, in lower case'),
    type: z.enum(['wallet', 'contract']).meta({
      description: 'contract when it has code; a wallet that delegates by EIP-7702 (23 bytes of code) stays a wallet',
    }),
    usdc: field.usdc('Balance through the ERC-20 face of USDC (6 decimals)'),
    nativeUsdc: field.decimal(
      'Balance of the native currency, the one amount of USDC that is shown with its 18 decimals. On Arc it is the ' +
        'same money as `usdc`: never add both; `note` says so, or that this chain keeps them apart',
    ),
    projectToken: field.objectOrNull("Balance of this service's project token; null when none is configured", {
      address: field.address('Contract of the token'),
      symbol: field.textOrNull('As the contract says; null when it says none'),
      balance: field.orNull('null when the contract does not answer', field.decimal('In whole tokens')),
    }),
    note: field.text('How usdc and nativeUsdc are related, for a reader without this schema'),
    balances: balancesField,
    transactionsSent: field.count(
      'The account nonce: transactions sent by a wallet, or contracts created by a contract',
    ),
    nonce: field.count('The same, under its own name: the nonce of its next transaction'),
    isContract: field.boolean('Whether `type` is contract'),
    codeBytes: field.count('Length of its code'),
    label: labelField,
    proxy: proxyField,
    creation: creationField,
    activity: field.objectOrNull(
      'Transactions that it sent, that were addressed to it, or that created it, failed ones too, in the collected ' +
        'blocks; first and last are null without one. Transfers that another contract makes are not among them: for ' +
        'the watched tokens see lastMovedAt',
      {
        first: placeField('Its first transaction in those blocks').nullable(),
        last: placeField('Its newest transaction in those blocks').nullable(),
        ...searchedFields,
        complete: field.boolean(
          'false when one may be missing: the blocks after `until` up to `asOfBlock` are not collected yet, or more ' +
            'accounts were active in an hour than this service keeps',
        ),
      },
    ),
    missing: missingField,
    ...readAtFields,
  }),
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
          address: '0x3600000000000000000000000000000000000000',
          symbol: 'USDC',
          decimals: 6,
          balance: '9871.402166',
          balanceRaw: '9871402166',
          lastMovedAt: null,
        },
        {
          address: '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1',
          symbol: 'EURC',
          decimals: 6,
          balance: '250',
          balanceRaw: '250000000',
          lastMovedAt: 1795198800,
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
        first: { block: 31809601, at: 1794979201 },
        last: { block: 32249990, at: 1795199395 },
        since: { block: 31731601, at: 1794940001 },
        until: { block: 32250000, at: 1795199401 },
        complete: true,
      },
      missing: [notCollected(['0x3600000000000000000000000000000000000000'])],
      ...EXAMPLE_READ_AT,
    },
  },
  async run({ address }, sources: Sources, signal) {
    const { chain, reads, projectToken } = sources;
    const block = await readNewestNumber(chain);
    const tokens = walletTokens(sources);
    const own = accountCalls(address, block);
    const ofCode = accountCodeCalls(address, block);
    const calls = [...own, ...ofCode, ...tokens.map((token) => balanceCall(token, address, block))];
    const [outcomes, metadata] = await Promise.all([
      chain.batch(calls, { signal }),
      readWalletTokens(chain, tokens, block, { signal }),
    ]);
    const behindCode = own.length + ofCode.length;
    const held = outcomes.slice(behindCode);
    const { balances, missing } = showBalances(sources, address, tokens, held, metadata);
    const [usdc] = balances;
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
      ...readAt(block, sources),
    };
  },
});

/** USDC, the project's token, USYC and the watched tokens, in lower case, each once. */
function walletTokens({ usdc, collected, usyc, projectToken }: Sources): Hex[] {
  const others = collected.watched.map(({ address }) => address);
  const own = [usdc, ...(projectToken === null ? [] : [projectToken]), ...(usyc ? [usyc.token] : []), ...others];
  return [...new Set(own.map((address) => address.toLowerCase() as Hex))].slice(0, MAX_TOKENS);
}

function accountCalls(address: string, block: number) {
  const at = toQuantity(block);
  return [
    { method: 'eth_getBalance', params: [address, at] },
    { method: 'eth_getTransactionCount', params: [address, at] },
  ];
}

/** Symbols and decimals of the tokens after USDC, kept for an hour. An answer does not fail for them: null. */
async function readWalletTokens(chain: ChainClient, tokens: readonly Hex[], block: number, options: RpcOptions) {
  return readTokens(chain, tokens.slice(1), block, options).catch((error: unknown) => {
    if (options.signal?.aborted || !(error instanceof AppError)) throw error;
    return null;
  });
}

const USDC = { symbol: 'USDC', decimals: USDC_DECIMALS };
const NO_METADATA = { field: 'balances', reason: 'no node gave symbols and decimals, so amounts are in base units' };

/** Null for a token that does not answer. Where the node failed, `missing` says so. */
function showBalances(
  { reads, collected }: Sources,
  owner: Hex,
  tokens: readonly Hex[],
  outcomes: readonly RpcOutcome[],
  metadata: readonly (Token | null)[] | null,
): { balances: z.output<typeof balancesField>; missing: Missing } {
  const amounts = outcomes.map(balanceIn);
  const balances = tokens.map((address, at) => {
    const amount = amounts[at] ?? null;
    const token = at === 0 ? USDC : (metadata?.[at - 1] ?? null);
    const decimals = token?.decimals ?? null;
    const listed = collected.watched.find((watched) => watched.address === address)?.symbol;
    return {
      address,
      symbol: token?.symbol ?? listed ?? null,
      decimals,
      balance: amount === null || decimals === null ? null : formatUnits(amount, decimals),
      balanceRaw: amount?.toString() ?? null,
      lastMovedAt: reads.lastMoved(address, owner)?.at ?? null,
    };
  });
  const refused = tokens.filter((_, at) => amounts[at] === undefined);
  const missing = refused.map((address) => ({ field: `balances of ${address}`, reason: 'no node gave it' }));
  const isCollected = (address: Hex) => collected.watched.some((watched) => watched.address === address);
  // Transfers of USDC, the first token, are never collected.
  const unseen = tokens.filter(
    (address, at) => balances[at]?.lastMovedAt === null && (at === 0 || !isCollected(address)),
  );
  const unmoved = unseen.length === 0 ? [] : [notCollected(unseen)];
  return { balances, missing: [...missing, ...(metadata === null ? [NO_METADATA] : []), ...unmoved] };
}

/** Null when the contract gives none, undefined when the node failed. */
function balanceIn(outcome: RpcOutcome | undefined): bigint | null | undefined {
  try {
    return readBalance(outcome);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

function readAccount([balance, count]: readonly RpcOutcome[], usdcRaw: string | null) {
  const nonce = readOutcome(count, index, 'nonce');
  const native = readOutcome(balance, quantity, 'balance');
  return { nativeUsdc: formatNative(native), note: noteOnNative(native, usdcRaw), transactionsSent: nonce, nonce };
}

/** Base units of the native currency in one of the ERC-20 face. */
const NATIVE_PER_UNIT = 10n ** BigInt(NATIVE_DECIMALS - USDC_DECIMALS);

/** Where they differ by more than the digits that the ERC-20 face cuts, as on the demo's local network. */
const APART_NOTE =
  'nativeUsdc and usdc are two balances on this chain, unlike on Arc: nativeUsdc pays for gas, usdc is what ' +
  'transfers of the USDC contract move.';

function noteOnNative(native: bigint, usdcRaw: string | null): string {
  return String(native / NATIVE_PER_UNIT) === usdcRaw ? NATIVE_NOTE : APART_NOTE;
}

function showProject(balances: z.output<typeof balancesField>, projectToken: string) {
  const address = projectToken.toLowerCase();
  const held = balances.find((balance) => balance.address === address);
  return { address, symbol: held?.symbol ?? null, balance: held?.balance ?? null };
}
