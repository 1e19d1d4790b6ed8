import { setTimeout as delay } from 'node:timers/promises';
import { encodeFunctionData, type Hex, keccak256, stringToHex } from 'viem';
import { artifacts } from '../contracts/artifacts.ts';
import { deployment, fundNative, fundUsdc, type SentTransaction, sendAndWait, USDC } from './contracts.ts';
import type { Miner } from './miner.ts';
import { createRandom, type Random } from './random.ts';
import type { Rpc } from './rpc.ts';

interface TrafficParts {
  readonly rpc: Rpc;
  readonly miner: Miner;
  readonly seed: number;
  readonly log: (line: string) => void;
}

/** Enough accounts that transfers look like many people's, few enough to be ready at once. */
const ACCOUNTS = 8;

/** Mean wait between two operations: about three a second, a tenth of Arc's own pace. */
const MEAN_PAUSE_MS = 330;

/** Wait after a failure, so that a node that is gone is not asked in a tight loop. */
const PAUSE_AFTER_ERROR_MS = 1000;

/**
 * Makes the chain look alive: native, USDC and token transfers, and small contracts deployed.
 * The same seed gives the same accounts and the same operations in the same order; a failed one is logged and skipped.
 * `stop` returns when nothing more is sent.
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

async function run({ rpc, miner, seed, log }: TrafficParts, signal: AbortSignal): Promise<void> {
  const random = createRandom(seed);
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => accountOf(seed, index));
  let token: Hex | null = null;
  while (!signal.aborted) {
    try {
      if (token === null) token = await prepare(rpc, miner, accounts);
      await rpc('eth_sendTransaction', [nextOperation(random, accounts, token)]);
      await delay(random.below(2 * MEAN_PAUSE_MS), undefined, { signal });
    } catch (error) {
      if (signal.aborted) return;
      log(`traffic: ${error instanceof Error ? error.message : error}`);
      await delay(PAUSE_AFTER_ERROR_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** An address that nobody has the key of: the node lets it send because it was told to. */
function accountOf(seed: number, index: number): Hex {
  return `0x${keccak256(stringToHex(`traffic ${seed} ${index}`)).slice(-40)}`;
}

/** Funds the accounts and deploys the token that they pass around. */
async function prepare(rpc: Rpc, miner: Miner, accounts: readonly Hex[]): Promise<Hex> {
  for (const account of accounts) {
    await rpc('anvil_impersonateAccount', [account]);
    await fundNative(rpc, miner, account, 100_000n * 10n ** 18n);
    await fundUsdc(rpc, miner, account, 1_000_000n * 1_000_000n);
  }
  const [first = USDC] = accounts;
  const { contractAddress } = await sendAndWait(rpc, miner, deployment(first, 'Token', ['Traffic', 'TRFC', 18]));
  if (!contractAddress) throw new Error('the token was not deployed');
  const { abi } = artifacts.Token;
  for (const account of accounts) {
    const data = encodeFunctionData({ abi, functionName: 'mint', args: [account, 10n ** 27n] });
    await rpc('eth_sendTransaction', [{ from: first, to: contractAddress, data }]);
  }
  return contractAddress;
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
