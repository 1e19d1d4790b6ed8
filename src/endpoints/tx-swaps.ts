import { z } from 'zod';
import { knownContract } from '../chain/contracts.ts';
import { movedToken, type Swap } from '../chain/dex.ts';
import { ARC_SYSTEM_ADDRESS, type Transfer } from '../chain/erc20.ts';
import type { CollectedPool } from '../collector/store/trades.ts';
import { formatUnits, NATIVE_DECIMALS } from '../lib/units.ts';
import { addressField, bigInteger, decimal } from './chain-fields.ts';
import type { Sources } from './sources.ts';
import type { TokenUnits } from './tx-tokens.ts';

const side = (description: string) =>
  z
    .strictObject({
      token: addressField('The token')
        .nullable()
        .meta({
          description: `The token; ${ARC_SYSTEM_ADDRESS} is native USDC; null when no single transfer of the transaction shows it`,
        }),
      symbol: z.string().nullable().meta({ description: 'As the contract says, not proof of anything' }),
      decimals: z.int().nullable().meta({ description: 'null when unknown' }),
      amount: decimal('In whole tokens').nullable().meta({ description: 'In whole tokens; null without decimals' }),
      amountRaw: bigInteger('In base units'),
    })
    .meta({ description });

/** One exchange in one pool. */
export const swapField = z.strictObject({
  pool: z
    .string()
    .regex(/^0x(?:[0-9a-f]{40}|[0-9a-f]{64})$/)
    .meta({ description: 'Address of the pool; its 32-byte id in Uniswap v4' }),
  contract: addressField('Emitter of the log: the pool, or Uniswap v4’s pool manager'),
  family: z
    .enum(['v2', 'v3', 'v4'])
    .meta({ description: 'Of which Uniswap version the event is; Slipstream pools emit v3’s' }),
  venue: z.string().nullable().meta({
    description:
      'Where it was traded, for a collected pool or a known contract; null: anyone can make a contract that emits such events',
  }),
  sold: side('What the pool got'),
  bought: side('What the pool gave'),
  logIndex: z.int().nonnegative().meta({ description: 'Position of the log in its block' }),
});

/** A swap with its pool's tokens, as far as they are known. */
export interface TradedSwap {
  readonly swap: Swap;
  readonly venue: string | null;
  readonly sold: SwapSide;
  readonly bought: SwapSide;
}

interface SwapSide {
  readonly token: `0x${string}` | null;
  readonly amount: bigint;
}

/**
 * Finds the tokens of a swap without reading the chain: 1. the collector knows the pool and its emitter; 2. exactly one token of the transaction moved
 * into the pool, or out of it, by the swap's amount.
 */
export function nameTokens(
  swap: Swap,
  transfers: readonly Transfer[],
  { reads, usdc, chain }: Pick<Sources, 'reads' | 'usdc' | 'chain'>,
): TradedSwap {
  const { pool, contract, amount0, amount1 } = swap;
  const collected = reads.pool(pool);
  const known = collected?.emitter === contract ? collected : null;
  const tokens = known === null ? [null, null] : tokensOf(known, usdc);
  const sides = [amount0, amount1].map((amount, at) => ({ amount, token: tokens[at] ?? null }));
  const pick = (isSold: boolean): SwapSide => {
    const found = sides.find((candidate) => candidate.amount > 0n === isSold) ?? { amount: 0n, token: null };
    const amount = isSold ? found.amount : -found.amount;
    const moved = movedToken(transfers, isSold ? { to: contract } : { from: contract }, amount);
    return { amount, token: found.token ?? moved };
  };
  return {
    swap,
    venue: known?.venue ?? knownContract(chain.chainId, contract),
    sold: pick(true),
    bought: pick(false),
  };
}

/** Token0 and token1 of a collected pool. USDC of 18 decimals is the native currency. */
function tokensOf({ token, tokenFirst, usdcDecimals }: CollectedPool, usdc: `0x${string}`): `0x${string}`[] {
  const money = usdcDecimals === NATIVE_DECIMALS ? ARC_SYSTEM_ADDRESS : usdc;
  return tokenFirst ? [token, money] : [money, token];
}

/** Converts a swap into the published shape. */
export function showSwap(
  { swap: { pool, contract, family, logIndex }, venue, sold, bought }: TradedSwap,
  unitsOf: (token: string) => TokenUnits,
): z.output<typeof swapField> {
  const show = ({ token, amount }: SwapSide) => {
    const { symbol, decimals } = token === null ? { symbol: null, decimals: null } : unitsOf(token);
    const human = decimals === null ? null : formatUnits(amount, decimals);
    return { token, symbol, decimals, amount: human, amountRaw: amount.toString() };
  };
  return { pool, contract, family, venue, sold: show(sold), bought: show(bought), logIndex };
}
