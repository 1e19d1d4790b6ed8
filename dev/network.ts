import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { type GuardedChild, startGuarded } from './child.ts';
import {
  type ArtifactName,
  deployment,
  fundNative,
  fundUsdc,
  MULTICALL3,
  placeContracts,
  sendAndWait,
  USDC,
} from './contracts.ts';
import { type Dex, deployDex, EURC, PROJECT_TOKEN, placeToken } from './dex.ts';
import type { EmbeddedLightning, EmbeddedLightningOptions } from './lightning/lightning.ts';
import { createMiner, createRpc, MIN_BASE_FEE, type Miner, type Rpc } from './miner.ts';
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

/** An account of the embedded network. */
export interface Account {
  readonly address: Hex;
  readonly privateKey: Hex;
}

/**
 * A fresh random account. Well-known test keys are not used, because bots empty their accounts within seconds, and Arc blocks one of them from genesis.
 */
export function createAccount(): Account {
  const privateKey: Hex = `0x${randomBytes(32).toString('hex')}`;
  return { address: privateKeyToAccount(privateKey).address, privateKey };
}

/** The architecture's name in the node's npm packages. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * The real binary inside the platform's npm package.
 * The package's own launcher is not used: it is a Node process in between, and a kill would end it instead of the node.
 */
function anvilBinary(): string {
  const platform = `${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const name = `@foundry-rs/anvil-${platform}`;
  try {
    const launcher = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json');
    const manifest = createRequire(launcher).resolve(`${name}/package.json`);
    JSON.parse(readFileSync(manifest, 'utf8'));
    return join(dirname(manifest), 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil');
  } catch (cause) {
    throw new Error(`the embedded network needs the package ${name}, which is not installed: run npm ci`, { cause });
  }
}

/** Time-out of a node's start, which takes about 0.1 s on an idle machine. */
const START_MS = 20_000;

/** Blocks whose state is kept in memory: four minutes of half-second blocks. Without the limit a long demo would fill the disk. */
const STATES_KEPT = 500;

/** A started node. */
interface Anvil {
  readonly process: GuardedChild;
  readonly port: number;
}

/**
 * Starts the node on loopback, without accounts and without mining (the miner makes the blocks).
 * With port 0 the system chooses a port and the node reports it, so that two nodes that start at once do not collide.
 */
async function startAnvil(options: { chainId: number; port: number; baseFeeWei: bigint }): Promise<Anvil> {
  let output = '';
  const args = ['--host', '127.0.0.1', '--port', String(options.port), '--chain-id', String(options.chainId)];
  args.push('--accounts', '0', '--no-mining', '--hardfork', 'osaka', '--gas-limit', '30000000');
  args.push('--base-fee', String(options.baseFeeWei), '--prune-history', String(STATES_KEPT), '--color', 'never');
  const child = await startGuarded(anvilBinary(), args, {
    onOutput: (text) => {
      if (output.length < 16_384) output += text;
    },
  });
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const port = /Listening on 127\.0\.0\.1:(\d+)/.exec(output)?.[1];
    if (port !== undefined) return { process: child, port: Number(port) };
    if (child.ended() !== null) break;
    await delay(20);
  }
  const how = child.ended() ?? `silent for ${START_MS / 1000} s`;
  await child.stop(0);
  throw new Error(`the embedded network's node did not start (${how}):\n${child.tail()}`);
}

/** Blocks as JSON-RPC shows them, as far as they are changed here. */
interface ShownBlock {
  readonly number: `0x${string}` | null;
  extraData: string;
}

interface Reply {
  readonly result?: ShownBlock | null;
}

/** The address that the service reads the chain from. */
interface AnnouncingProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** The calls whose results are blocks. */
const GIVES_BLOCKS = /"eth_getBlockBy(Number|Hash)"/;

/**
 * Passes JSON-RPC over HTTP on to the node, and writes the next block's base fee into the `extraData` of every block, as Arc does: eight bytes,
 * big-endian. The node cannot do that itself. The blocks' hashes are the node's, so they do not match the changed headers; no part of the service computes them again.
 * `announced` resolves with the fee in wei that the block's child has, or null for a block from before the miner's first.
 */
async function startAnnouncingProxy(
  nodeUrl: string,
  announced: (block: number) => Promise<bigint | null>,
): Promise<AnnouncingProxy> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, outgoing) => {
    void pass(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const asked = await readAll(incoming);
    const { status, body } = await ask(nodeUrl, agent, asked);
    const answer = GIVES_BLOCKS.test(asked.toString('utf8')) ? await announceIn(body, announced) : body;
    outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function announceIn(body: Buffer, announced: (block: number) => Promise<bigint | null>): Promise<Buffer> {
  const replies = JSON.parse(body.toString('utf8')) as Reply | Reply[];
  for (const { result } of Array.isArray(replies) ? replies : [replies]) {
    if (typeof result?.extraData !== 'string' || result.number === null) continue;
    const fee = await announced(Number(result.number));
    if (fee !== null) result.extraData = `0x${fee.toString(16).padStart(16, '0')}`;
  }
  return Buffer.from(JSON.stringify(replies));
}

function ask(url: string, agent: Agent, body: Buffer): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    request(url, { method: 'POST', agent, headers }, (response) => {
      readAll(response).then((answer) => resolve({ status: response.statusCode ?? 502, body: answer }), reject);
    })
      .on('error', reject)
      .end(body);
  });
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
