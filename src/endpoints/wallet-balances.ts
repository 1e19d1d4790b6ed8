import { z } from 'zod';
import { balanceCall, readBalance, readTokens, type Token } from '../chain/erc20.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { RpcOptions, RpcOutcome } from '../chain/rpc/wire.ts';
import { AppError } from '../errors.ts';
import { formatUnits, NATIVE_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import { addressField, atField, bigInteger, decimal } from './chain-fields.ts';
import type { Missing } from './missing-field.ts';
import type { Sources } from './sources.ts';

type Hex = `0x${string}`;
type BalanceSources = Pick<Sources, 'reads' | 'collected'>;
type TokenSources = Pick<Sources, 'collected' | 'usdc' | 'projectToken' | 'usyc'>;

/** Bounds the calls of a request. A watch list is as long as the operator makes it; usual ones have some five tokens. */
const MAX_TOKENS = 50;
const USDC = { symbol: 'USDC', decimals: USDC_DECIMALS };
const NO_METADATA = { field: 'balances', reason: 'no node gave symbols and decimals, so amounts are in base units' };

/** Where the two balances are one, as on Arc. */
export const NATIVE_NOTE =
  'nativeUsdc is the same money as usdc: the native currency of the chain is USDC, shown there with its 18 decimals. Never add both.';
/** Where they differ by more than the digits that the ERC-20 face cuts, as on the local network of the demo. */
const APART_NOTE =
  'nativeUsdc and usdc are two balances on this chain, unlike on Arc: nativeUsdc pays for gas, usdc is what transfers of the USDC contract move.';
/** Base units of the native currency in one of the ERC-20 face. */
const NATIVE_PER_UNIT = 10n ** BigInt(NATIVE_DECIMALS - USDC_DECIMALS);

/** An account's tokens. */
export const balancesField = z
  .array(
    z.strictObject({
      address: addressField('Contract of the token'),
      symbol: z.string().nullable().meta({ description: 'As the contract says, else as this service lists it' }),
      decimals: z.int().nullable().meta({ description: 'null when the contract does not say' }),
      balance: decimal('In whole tokens')
        .nullable()
        .meta({ description: 'In whole tokens; null without decimals, or when the contract does not answer' }),
      balanceRaw: bigInteger('In base units')
        .nullable()
        .meta({ description: 'In base units; null when the contract does not answer' }),
      lastMovedAt: atField('The newest collected transfer that moved it to or from the account').nullable().meta({
        description:
          'Unix seconds of the newest collected transfer that moved the token to or from the account; null without one, where more accounts moved the token than are kept (50,000), and for tokens whose transfers are not collected, such as USDC, which `missing` names',
      }),
    }),
  )
  .meta({
    description: `USDC first, then the project’s token, USYC and the other tokens that this service watches; ${MAX_TOKENS} at most in all`,
  });

/** Says that the newest transfers of these tokens are not known. */
export const notCollected = (tokens: readonly string[]) => ({
  field: 'balances.lastMovedAt',
  reason: `this service does not collect the transfers of ${tokens.join(', ')}`,
});

/** How a native balance in wei and one of the ERC-20 face in base units are related, by what they are. */
export function noteOnNative(native: bigint, usdcRaw: string | null): string {
  return String(native / NATIVE_PER_UNIT) === usdcRaw ? NATIVE_NOTE : APART_NOTE;
}

/** The tokens of every answer about a wallet, in lower case: USDC, the watched ones, USYC and the project's; each once. */
export function walletTokens({ usdc, collected, usyc, projectToken }: TokenSources): Hex[] {
  const others = collected.watched.map(({ address }) => address);
  const own = [usdc, ...(projectToken === null ? [] : [projectToken]), ...(usyc ? [usyc.token] : []), ...others];
  return [...new Set(own.map((address) => address.toLowerCase() as Hex))].slice(0, MAX_TOKENS);
}

/** The calls whose outcomes `showBalances` takes, in order. */
export const balanceCalls = (tokens: readonly Hex[], owner: Hex, block: number) =>
  tokens.map((token) => balanceCall(token, owner, block));

/**
 * Symbols and decimals of the tokens after USDC, which are asked for once an hour. Null when no node gave them: a wallet's answer does not depend on
 * them.
 */
export async function readWalletTokens(chain: ChainClient, tokens: readonly Hex[], block: number, options: RpcOptions) {
  return readTokens(chain, tokens.slice(1), block, options).catch((error: unknown) => {
    if (options.signal?.aborted || !(error instanceof AppError)) throw error;
    return null;
  });
}

/** What an account holds of each token. A token that does not answer has null; where the node failed, `missing` says so. */
export function showBalances(
  { reads, collected }: BalanceSources,
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
  // The transfers of USDC, the first of the tokens, are never collected.
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
