import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { type Account, createAccount } from './accounts.ts';
import { startAnnouncingProxy } from './announcing-proxy.ts';
import { type Anvil, startAnvil } from './anvil.ts';
import { MIN_BASE_FEE } from './base-fee.ts';
import type { ArtifactName } from './contracts/artifacts.ts';
import { deployment, fundNative, fundUsdc, MULTICALL3, placeContracts, sendAndWait, USDC } from './contracts.ts';
import { type Dex, deployDex, EURC, PROJECT_TOKEN, placeToken } from './dex.ts';
import type { EmbeddedLightning, EmbeddedLightningOptions } from './lightning/lightning.ts';
import { createMiner, type Miner } from './miner.ts';
import { createRpc, type Rpc } from './rpc.ts';
import { startTraffic } from './traffic.ts';

export interface EmbeddedNetworkOptions {
  /** Arc mainnet's chain id by default, so that signatures are the same as there. */
  chainId?: number;
  blockTimeMs?: number;
  /** The node's port; 0 lets the system choose. */
  port?: number;
  /** The seed of the traffic: the same seed gives the same operations in the same order. */
  seed?: number;
  traffic?: boolean;
  /** Announce the next base fee in each block, as Arc does; by default only with traffic, because it costs a hop for each request. */
  announcedFees?: boolean;
  /** Uniswap with pools of EURC and a project token; by default only with traffic, because payments do not need it. */
  dex?: boolean;
  /** Two Lightning nodes with a channel, to sell and to buy in sats; off by default, because they cost a second and 150 MB. */
  lightning?: boolean | EmbeddedLightningOptions;
  log?: (line: string) => void;
}

/**
 * A local chain that works like Arc for payments.
 * Unlike Arc, native and ERC-20 USDC are two balances here, native movements write no log, there is no history of block hashes (EIP-2935), and a
 * node's own `extraData` holds no next base fee: `rpcUrl` adds it where `announcedFees` is on.
 */
export interface EmbeddedNetwork {
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly wsUrl: string;
  readonly usdc: Hex;
  /** At its address on Arc, 6 decimals; anyone may mint. */
  readonly eurc: Hex;
  readonly projectToken: Hex;
  readonly multicall3: Hex;
  /** Uniswap and its pools; null when it was not requested. */
  readonly pools: Dex | null;
  /** Null when it was not requested. */
  readonly lightning: EmbeddedLightning | null;
  /** Holds native USDC, for gas. */
  readonly relayer: Account;
  /** Holds 10 USDC of the ERC-20 contract and no native USDC: an x402 buyer needs no gas. */
  readonly buyer: Account;
  /** Holds the same amount, for the self-test. */
  readonly selfTester: Account;
  /** Signs claims and refunds of payment channels for the seller. It holds nothing. */
  readonly authorizer: Account;
  readonly seller: Hex;
  /** A directory that is deleted with the network, because a ledger of this chain is useless without it. */
  readonly dataDir: string;
  /** The node's own process. */
  readonly pid: number;
  rpc: Rpc;
  fundUsdc(address: Hex, units: bigint): Promise<void>;
  fundNative(address: Hex, wei: bigint): Promise<void>;
  /** Deploys one of our contracts and returns its address once it is mined. */
  deploy(name: ArtifactName, args?: readonly unknown[]): Promise<Hex>;
  mine(blocks?: number): Promise<void>;
  /** Stops mining; transactions wait. Only `mine` makes blocks. */
  pauseMining(): Promise<void>;
  resumeMining(): Promise<void>;
  /** Ends the node and everything else that was started, and resolves when it has ended. Safe to call twice. */
  stop(): Promise<void>;
}

const USDC_UNIT = 1_000_000n;
const NATIVE_UNIT = 10n ** 18n;

/**
 * Starts a real EVM node with Arc's chain id, block pace, gas limit and base fee rule, Arc's contracts at their addresses,
 * and fresh random accounts. Rejects with the node's own output when it does not start.
 */
export async function startEmbeddedNetwork(options: EmbeddedNetworkOptions = {}): Promise<EmbeddedNetwork> {
  const { chainId = 5042, blockTimeMs = 500, port = 0, log = () => {} } = options;
  // Both start in parallel, because each mostly waits for its processes.
  const [chain, lightning] = await Promise.allSettled([
    startChain({ chainId, blockTimeMs, log, ...options }, port),
    startLightning(options.lightning),
  ]);
  if (chain.status === 'fulfilled' && lightning.status === 'fulfilled')
    return withLightning(chain.value, lightning.value);
  if (chain.status === 'fulfilled') await chain.value.stop();
  if (lightning.status === 'fulfilled') await lightning.value?.stop();
  throw chain.status === 'rejected' ? chain.reason : (lightning as PromiseRejectedResult).reason;
}

type ChainPart = Omit<EmbeddedNetwork, 'lightning'>;

async function startChain(furnishing: Furnishing, port: number): Promise<ChainPart> {
  const anvil = await startAnvil({ chainId: furnishing.chainId, port, baseFeeWei: MIN_BASE_FEE });
  try {
    return await furnish(anvil, furnishing);
  } catch (error) {
    await anvil.process.stop(0);
    throw error;
  }
}

async function startLightning(wanted: EmbeddedNetworkOptions['lightning']): Promise<EmbeddedLightning | null> {
  if (!wanted) return null;
  // Loaded only when it is requested, because its WASM takes half a second.
  const { startEmbeddedLightning } = await import('./lightning/lightning.ts');
  return startEmbeddedLightning(wanted === true ? {} : wanted);
}

function withLightning(chain: ChainPart, lightning: EmbeddedLightning | null): EmbeddedNetwork {
  return {
    ...chain,
    lightning,
    async stop() {
      await Promise.all([lightning?.stop(), chain.stop()]);
    },
  };
}

type Furnishing = EmbeddedNetworkOptions & Required<Pick<EmbeddedNetworkOptions, 'chainId' | 'blockTimeMs' | 'log'>>;

/** Writes Arc's contracts and the tokens to their addresses, and funds the accounts. */
async function placeAll(
  rpc: Rpc,
  miner: Miner,
  { relayer, deployer, buyer, selfTester }: Record<'relayer' | 'deployer' | 'buyer' | 'selfTester', Account>,
): Promise<void> {
  await placeContracts(rpc);
  await fundNative(rpc, miner, relayer.address, 1_000n * NATIVE_UNIT);
  await fundNative(rpc, miner, deployer.address, 1_000_000n * NATIVE_UNIT);
  await fundUsdc(rpc, miner, buyer.address, 10n * USDC_UNIT);
  await fundUsdc(rpc, miner, selfTester.address, 10n * USDC_UNIT);
  await rpc('anvil_impersonateAccount', [deployer.address]);
  await placeToken(rpc, EURC, 'EURC', 'EURC', 6);
  await placeToken(rpc, PROJECT_TOKEN, 'Percall', 'CALL', 18);
  await miner.mine();
}

async function furnish(anvil: Anvil, options: Furnishing): Promise<ChainPart> {
  const { chainId, log } = options;
  const rpcUrl = `http://127.0.0.1:${anvil.port}`;
  const rpc = createRpc(rpcUrl);
  await checkNode(rpc, chainId);
  const miner = createMiner(rpc, options.blockTimeMs, (error) => {
    if (anvil.process.ended() === null) log(`no block: ${error instanceof Error ? error.message : error}`);
  });
  const [relayer, buyer, seller, deployer] = [createAccount(), createAccount(), createAccount(), createAccount()];
  const selfTester = createAccount();
  await placeAll(rpc, miner, { relayer, deployer, buyer, selfTester });
  const pools = (options.dex ?? options.traffic) ? await deployDex(rpc, miner, deployer.address) : null;
  const dataDir = await mkdtemp(join(tmpdir(), 'percall-embedded-'));
  miner.resume();

  const announces = options.announcedFees ?? options.traffic ?? false;
  const proxy = announces ? await startAnnouncingProxy(rpcUrl, miner.nextBaseFee) : null;
  const traffic = options.traffic ? startTraffic({ rpc, miner, seed: options.seed ?? 1, dex: pools, log }) : null;
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await traffic?.stop();
    await miner.pause();
    await proxy?.stop();
    await anvil.process.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return {
    chainId,
    rpcUrl: proxy?.url ?? rpcUrl,
    wsUrl: `ws://127.0.0.1:${anvil.port}`,
    usdc: USDC,
    eurc: EURC,
    projectToken: PROJECT_TOKEN,
    multicall3: MULTICALL3,
    pools,
    relayer,
    buyer,
    selfTester,
    authorizer: createAccount(),
    seller: seller.address,
    dataDir,
    pid: anvil.process.pid,
    rpc,
    fundUsdc: (address, units) => fundUsdc(rpc, miner, address, units),
    fundNative: (address, wei) => fundNative(rpc, miner, address, wei),
    async deploy(name, args = []) {
      const receipt = await sendAndWait(rpc, miner, deployment(deployer.address, name, args));
      if (!receipt.contractAddress) throw new Error(`${name} was not deployed`);
      return receipt.contractAddress;
    },
    mine: (blocks) => miner.mine(blocks),
    pauseMining: () => miner.pause(),
    resumeMining: async () => miner.resume(),
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Throws unless the answering node is the one that was started. */
async function checkNode(rpc: Rpc, chainId: number): Promise<void> {
  const answered = Number(await rpc<Hex>('eth_chainId'));
  if (answered !== chainId) throw new Error(`the embedded network's node is on chain ${answered}, not ${chainId}`);
  // Otherwise the node would write a line for every call.
  await rpc('anvil_setLoggingEnabled', [false]);
}
