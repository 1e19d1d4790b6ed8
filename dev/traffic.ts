import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, type Hex, keccak256, stringToHex } from 'viem';
import {
  artifacts,
  deployment,
  fundNative,
  fundUsdc,
  type SentTransaction,
  send,
  sendAndWait,
  USDC,
} from './contracts.ts';
import { DEPTHS, type Dex, DISTRIBUTOR, eurcWorth, PROJECT_TOKEN, projectWorth } from './dex.ts';
import { type Miner, type Rpc, toQuantity } from './miner.ts';

interface TrafficParts {
  readonly rpc: Rpc;
  readonly miner: Miner;
  readonly seed: number;
  /** Where to swap; null: no swaps, burns and payouts. */
  readonly dex: Dex | null;
  readonly log: (line: string) => void;
}

/** Enough accounts for varied transfers, and few enough to be ready at once. */
const ACCOUNTS = 8;

/** Mean wait between two operations: about three a second, a tenth of Arc's own pace. */
const MEAN_PAUSE_MS = 330;

/** With a DEX, the share of swaps, burns and payouts in a hundred operations. Arc has one v4 swap to two or three transactions. */
const DEX_SHARE = 30;

/** The address that is commonly used for burning tokens. */
const DEAD: Hex = '0x000000000000000000000000000000000000dead';

/** Wait after a failure, so that a dead node is not asked in a tight loop. */
const PAUSE_AFTER_ERROR_MS = 1000;

/**
 * Creates traffic on the chain: native, USDC and token transfers, small contracts deployed, swaps, the project token burned and USDC paid out.
 * The same seed gives the same accounts and the same operations in the same order; a failed one is logged and skipped.
 * `stop` resolves when nothing more is sent.
 */
export function startTraffic(parts: TrafficParts): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const done = run(parts, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

async function run({ rpc, miner, seed, dex, log }: TrafficParts, signal: AbortSignal): Promise<void> {
  const random = createRandom(seed);
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => accountOf(seed, index));
  const nextSwap = dex && createSwaps(dex);
  let token: Hex | null = null;
  while (!signal.aborted) {
    try {
      if (token === null) token = await prepare({ rpc, miner, dex }, accounts);
      const operation =
        nextSwap && random.below(100) < DEX_SHARE
          ? nextDexOperation(random, accounts, nextSwap)
          : nextOperation(random, accounts, token);
      await send(rpc, operation);
      await delay(random.below(2 * MEAN_PAUSE_MS), undefined, { signal });
    } catch (error) {
      if (signal.aborted) return;
      log(`traffic: ${error instanceof Error ? error.message : error}`);
      await delay(PAUSE_AFTER_ERROR_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** An address without a known key. The node sends from it by impersonation. */
function accountOf(seed: number, index: number): Hex {
  return `0x${keccak256(stringToHex(`traffic ${seed} ${index}`)).slice(-40)}`;
}

/** Funds the accounts and deploys the token that they transfer. */
async function prepare(
  { rpc, miner, dex }: Pick<TrafficParts, 'rpc' | 'miner' | 'dex'>,
  accounts: readonly Hex[],
): Promise<Hex> {
  for (const account of dex ? [...accounts, DISTRIBUTOR] : accounts) {
    await rpc('anvil_impersonateAccount', [account]);
    await fundNative(rpc, miner, account, 100_000n * 10n ** 18n);
    await fundUsdc(rpc, miner, account, 1_000_000n * 1_000_000n);
  }
  const [first = USDC] = accounts;
  const { contractAddress } = await sendAndWait(rpc, miner, deployment(first, 'Token', ['Traffic', 'TRFC', 18]));
  if (!contractAddress) throw new Error('the token was not deployed');
  const { abi } = artifacts.Token;
  const tokens = dex ? [contractAddress, PROJECT_TOKEN] : [contractAddress];
  const mints = accounts.flatMap((account) => {
    const data = encodeFunctionData({ abi, functionName: 'mint', args: [account, 10n ** 27n] });
    return tokens.map((to) => ({ from: first, to, data }));
  });
  for (const mint of mints.slice(0, -1)) await send(rpc, mint);
  // The mints must be mined before a transfer, because the gas of a transfer cannot be estimated without a balance. The last one is mined after all
  // others.
  for (const mint of mints.slice(-1)) await sendAndWait(rpc, miner, mint);
  return contractAddress;
}

/** In ten: 8 swaps, a burn of a thousandth to ten of the project token, a payout of as much USDC. */
function nextDexOperation(
  random: Random,
  accounts: readonly Hex[],
  nextSwap: (random: Random, from: Hex) => SentTransaction,
): SentTransaction {
  const account = random.pick(accounts);
  const kind = random.below(10);
  if (kind < 8) return nextSwap(random, account);
  const thousandths = BigInt(1 + random.below(10_000));
  if (kind === 8) return { from: account, to: PROJECT_TOKEN, data: transferData(DEAD, thousandths * 10n ** 15n) };
  return { from: DISTRIBUTOR, to: USDC, data: transferData(account, thousandths * 1_000n) };
}

/** In a hundred: 38 native, 35 USDC and 17 token transfers, 10 deployments; amounts from a thousandth to ten. */
function nextOperation(random: Random, accounts: readonly Hex[], token: Hex): SentTransaction {
  const from = random.pick(accounts);
  const to = random.pick(accounts.filter((account) => account !== from));
  const thousandths = BigInt(1 + random.below(10_000));
  const kind = random.below(100);
  if (kind < 38) return { from, to, value: `0x${(thousandths * 10n ** 15n).toString(16)}` };
  if (kind < 73) return { from, to: USDC, data: transferData(to, thousandths * 1_000n) };
  if (kind < 90) return { from, to: token, data: transferData(to, thousandths * 10n ** 15n) };
  const tag = random.below(1_000_000).toString(36).toUpperCase();
  return deployment(from, 'Token', [`Token ${tag}`, tag, random.pick([6, 8, 18])]);
}

function transferData(to: Hex, value: bigint): Hex {
  return encodeFunctionData({ abi: artifacts.Token.abi, functionName: 'transfer', args: [to, value] });
}

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

/** Pseudo-random numbers from a seed, so that a run can be repeated. */
interface Random {
  /** A whole number from 0 up to, and without, `limit`. */
  below(limit: number): number;
  pick<T>(items: readonly T[]): T;
}

/** A small generator (mulberry32) for varying traffic. Not for secrets. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    pick: <T>(items: readonly T[]): T => {
      if (items.length === 0) throw new Error('nothing to pick from');
      return items[Math.floor(next() * items.length)] as T;
    },
  };
}
