import { encodeFunctionData, type Hex } from 'viem';
import { artifacts } from './contracts/artifacts.ts';
import type { SentTransaction } from './contracts.ts';
import { DEPTHS, type Dex, eurcWorth, projectWorth } from './dex.ts';
import type { Random } from './random.ts';
import { toQuantity } from './rpc.ts';

type PoolName = keyof typeof DEPTHS;

interface Units {
  /** Base units of either side for an amount of USDC (6 decimals), at the price with which the pools start. */
  readonly token: (micro: bigint) => bigint;
  readonly usdc: (micro: bigint) => bigint;
  readonly tokenFirst: boolean;
}

const EURC_UNITS: Units = { token: eurcWorth, usdc: (micro) => micro, tokenFirst: false };
const PROJECT_UNITS: Units = { token: projectWorth, usdc: (micro) => micro, tokenFirst: true };
const UNITS: Record<PoolName, Units> = {
  v2: EURC_UNITS,
  v3: EURC_UNITS,
  v4: EURC_UNITS,
  v4Native: { ...EURC_UNITS, usdc: (micro) => micro * 10n ** 12n },
  projectV2: PROJECT_UNITS,
  projectV3: PROJECT_UNITS,
};

/** v4 has most of the trades, as on Arc. */
const PICKS: readonly PoolName[] = ['v4', 'v4', 'v4', 'v4', 'v4Native', 'v3', 'v3', 'v2', 'projectV2', 'projectV3'];

/** Far more gas than any of the swaps uses. It is fixed, because an estimate would run each swap once more. */
const SWAP_GAS = toQuantity(500_000);

/**
 * Makes swaps of every venue, in both directions, for an exact amount in or (v3, v4) out.
 * Sizes are spread evenly over magnitudes, from dust to a fiftieth of the pool's depth. A pool whose price has moved far is traded back, so that prices
 * vary within bounds. The same random numbers give the same swaps.
 */
export function createSwaps(dex: Dex): (random: Random, from: Hex) => SentTransaction {
  const net: Record<string, bigint> = {};
  return (random, from) => {
    const name = random.pick(PICKS);
    const depth = DEPTHS[name];
    const micro = ((depth / 50n / (1n << BigInt(random.below(17)))) * BigInt(500 + random.below(500))) / 1000n;
    const exactOut = random.below(4) === 0;
    const drift = net[name] ?? 0n;
    const limit = depth / 50n;
    const coin = random.below(2) === 0;
    const sellToken = drift > limit || (drift >= -limit && coin);
    net[name] = sellToken ? drift - micro : drift + micro;
    return { from, to: dex.trader, gas: SWAP_GAS, data: swapData(dex, name, { sellToken, micro, exactOut }) };
  };
}

interface Swap {
  readonly sellToken: boolean;
  /** Size in USDC's base units. */
  readonly micro: bigint;
  readonly exactOut: boolean;
}

function swapData(dex: Dex, name: PoolName, { sellToken, micro, exactOut }: Swap): Hex {
  const { token, usdc, tokenFirst } = UNITS[name];
  const zeroForOne = sellToken === tokenFirst;
  const amountIn = sellToken ? token(micro) : usdc(micro);
  const amountOut = sellToken ? usdc(micro) : token(micro);
  const exact = exactOut ? -amountOut : amountIn;
  const { abi } = artifacts.Trader;
  if (name === 'v2' || name === 'projectV2') {
    return encodeFunctionData({ abi, functionName: 'swapV2', args: [dex[name], zeroForOne, amountIn] });
  }
  if (name === 'v3' || name === 'projectV3') {
    return encodeFunctionData({ abi, functionName: 'swapV3', args: [dex[name], zeroForOne, exact] });
  }
  const key = name === 'v4' ? dex.v4Key : dex.v4NativeKey;
  return encodeFunctionData({ abi, functionName: 'swapV4', args: [dex.poolManager, key, zeroForOne, exact] });
}
