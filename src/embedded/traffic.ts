import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, type Hex, keccak256, stringToHex } from 'viem';
import { artifacts } from './contracts/artifacts.ts';
import { deployment, fundNative, fundUsdc, type SentTransaction, send, sendAndWait, USDC } from './contracts.ts';
import { type Dex, DISTRIBUTOR, PROJECT_TOKEN } from './dex.ts';
import type { Miner } from './miner.ts';
import { createRandom, type Random } from './random.ts';
import type { Rpc } from './rpc.ts';
import { createSwaps } from './swaps.ts';

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
