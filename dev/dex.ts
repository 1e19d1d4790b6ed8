import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { encodeAbiParameters, encodeFunctionData, type Hex, keccak256, parseAbi, stringToHex, toHex } from 'viem';
import { artifacts, deployment, fundNative, fundUsdc, type SentTransaction, send, USDC } from './contracts.ts';
import { type Miner, type Rpc, toQuantity } from './miner.ts';

/** Arc's address of EURC. It is above USDC's address, so that USDC is the first token of every pool. */
export const EURC: Hex = '0xbef5f6d51cb62b58e6a8f77868681825c6fe21c1';
/** The project's token on this network. Its address is below USDC's, so that it is the first token of its pools. */
export const PROJECT_TOKEN: Hex = '0x1ca1100000000000000000000000000000000001';

/** The account that pays out USDC for the project. Its key is unknown. */
export const DISTRIBUTOR: Hex = `0x${keccak256(stringToHex('distributor')).slice(-40)}`;

const NATIVE: Hex = '0x0000000000000000000000000000000000000000';

/** Fee in millionths, as v3 and v4 count it, and the ends of the whole price range on the matching tick grid. */
const FINE = { fee: 500, spacing: 10, end: 887_270 };
const COARSE = { fee: 3000, spacing: 60, end: 887_220 };

/** More gas than the deployment of either factory (24 kB of code) uses. It is fixed, because an estimate would run the deployment many times. */
const DEPLOY_GAS = toQuantity(7_000_000);

/** Uniswap on this network, and the trading contract. */
export interface Dex {
  readonly factories: { readonly v2: Hex; readonly v3: Hex };
  readonly poolManager: Hex;
  /** The contract that trades with its own balance when it is called. */
  readonly trader: Hex;
  /** EURC against USDC. */
  readonly v2: Hex;
  readonly v3: Hex;
  readonly v4Key: PoolKey;
  readonly v4PoolId: Hex;
  /** EURC against native USDC (18 decimals). */
  readonly v4NativeKey: PoolKey;
  readonly v4NativePoolId: Hex;
  /** The project's token against USDC. */
  readonly projectV2: Hex;
  readonly projectV3: Hex;
}

const key = (currency0: Hex): PoolKey => ({
  currency0,
  currency1: EURC,
  hooks: NATIVE,
  fee: FINE.fee,
  tickSpacing: FINE.spacing,
});

/** USD 1.165 a EURC, in Arc's band of late 2026; the project's token starts at USD 0.05. */
export const eurcWorth = (usdc: bigint): bigint => (usdc * 1000n) / 1165n;
export const projectWorth = (usdc: bigint): bigint => usdc * 20n * 10n ** 12n;

/** The initial USDC of each pool, in base units of 6 decimals. */
export const DEPTHS = {
  v2: 200_000n * 10n ** 6n,
  v3: 1_000_000n * 10n ** 6n,
  v4: 2_000_000n * 10n ** 6n,
  v4Native: 500_000n * 10n ** 6n,
  projectV2: 50_000n * 10n ** 6n,
  projectV3: 100_000n * 10n ** 6n,
} as const;

/** Writes one of our tokens to a fixed address: its code, and the storage that its constructor would have set (name, symbol, decimals). */
export async function placeToken(
  rpc: Rpc,
  address: Hex,
  name: string,
  symbol: string,
  decimals: number,
): Promise<void> {
  await rpc('anvil_setCode', [address, artifacts.Token.runtime]);
  const slots = [shortString(name), shortString(symbol), toHex(decimals, { size: 32 })];
  for (const [slot, value] of slots.entries()) {
    await rpc('anvil_setStorageAt', [address, toHex(slot, { size: 32 }), value]);
  }
}

/** As Solidity stores a string of at most 31 bytes: the bytes first, twice the length last. */
function shortString(text: string): Hex {
  const bytes = Buffer.alloc(32);
  bytes.write(text);
  bytes[31] = Buffer.byteLength(text) * 2;
  return toHex(bytes);
}

/**
 * Deploys Uniswap v2, v3 and v4 as published, and fills pools of EURC and of the project's token against USDC.
 * The miner must be paused. Three blocks are made, because each step needs the one before it to be mined.
 */
export async function deployDex(rpc: Rpc, miner: Miner, deployer: Hex): Promise<Dex> {
  const deploy = (data: Hex): SentTransaction => ({ from: deployer, data, gas: DEPLOY_GAS });
  const contracts = await mineAll(rpc, miner, [
    deploy(uniswapDeployment('v2Factory', deployer)),
    deploy(uniswapDeployment('v3Factory', deployer)),
    deploy(uniswapDeployment('poolManager', deployer)),
    { ...deployment(deployer, 'Trader', []), gas: DEPLOY_GAS },
  ]);
  const [v2Factory, v3Factory, poolManager, trader] = contracts.map(({ contractAddress }) => contractAddress ?? NATIVE);
  if (!v2Factory || !v3Factory || !poolManager || !trader) throw new Error('Uniswap was not deployed');

  const call = (to: Hex, data: Hex): SentTransaction => ({ from: deployer, to, data, gas: DEPLOY_GAS });
  const pair = (token: Hex) =>
    encodeFunctionData({ abi: UNISWAP_ABI, functionName: 'createPair', args: [token, USDC] });
  const pool = (token: Hex, fee: number) =>
    encodeFunctionData({ abi: UNISWAP_ABI, functionName: 'createPool', args: [token, USDC, fee] });
  await mineAll(rpc, miner, [call(v2Factory, pair(EURC)), call(v2Factory, pair(PROJECT_TOKEN))]);
  await mineAll(rpc, miner, [call(v3Factory, pool(EURC, FINE.fee)), call(v3Factory, pool(PROJECT_TOKEN, COARSE.fee))]);
  const ask = async (to: Hex, functionName: 'getPair' | 'getPool', args: readonly unknown[]): Promise<Hex> => {
    const data = encodeFunctionData({ abi: UNISWAP_ABI, functionName, args: args as [Hex, Hex, number] });
    return `0x${(await rpc<Hex>('eth_call', [{ to, data }, 'latest'])).slice(-40)}`;
  };
  const [v4Key, v4NativeKey] = [key(USDC), key(NATIVE)];
  const dex: Dex = {
    factories: { v2: v2Factory, v3: v3Factory },
    poolManager,
    trader,
    v2: await ask(v2Factory, 'getPair', [EURC, USDC]),
    v3: await ask(v3Factory, 'getPool', [EURC, USDC, FINE.fee]),
    v4Key,
    v4PoolId: poolIdOf(v4Key),
    v4NativeKey,
    v4NativePoolId: poolIdOf(v4NativeKey),
    projectV2: await ask(v2Factory, 'getPair', [PROJECT_TOKEN, USDC]),
    projectV3: await ask(v3Factory, 'getPool', [PROJECT_TOKEN, USDC, COARSE.fee]),
  };
  await fillPools(rpc, miner, deployer, dex);
  return dex;
}

/** Funds the pools, and the trading contract with a balance for days of traffic. */
async function fillPools(rpc: Rpc, miner: Miner, deployer: Hex, dex: Dex): Promise<void> {
  const { trader, poolManager } = dex;
  await fundUsdc(rpc, miner, trader, 100_000_000n * 10n ** 6n);
  await fundNative(rpc, miner, trader, 10_000_000n * 10n ** 18n);
  const mint = (token: Hex, amount: bigint): SentTransaction => ({
    from: deployer,
    to: token,
    gas: toQuantity(200_000),
    data: encodeFunctionData({ abi: artifacts.Token.abi, functionName: 'mint', args: [trader, amount] }),
  });
  const start = (to: Hex, price: bigint): SentTransaction => ({
    from: deployer,
    to,
    gas: toQuantity(500_000),
    data: encodeFunctionData({ abi: UNISWAP_ABI, functionName: 'initialize', args: [price] }),
  });
  const startV4 = (poolKey: PoolKey, price: bigint): SentTransaction => ({
    from: deployer,
    to: poolManager,
    gas: toQuantity(500_000),
    data: encodeFunctionData({ abi: POOL_MANAGER_ABI, functionName: 'initialize', args: [poolKey, price] }),
  });
  const call = (functionName: string, args: readonly unknown[]): SentTransaction => ({
    from: deployer,
    to: trader,
    gas: toQuantity(1_000_000),
    data: encodeFunctionData({ abi: artifacts.Trader.abi, functionName, args: [...args] }),
  });
  const { v2, v3, v4, v4Native, projectV2, projectV3 } = DEPTHS;
  const liquidity = (a: bigint, b: bigint): bigint => squareRoot(a * b);
  const native = v4Native * 10n ** 12n;
  await mineAll(rpc, miner, [
    mint(EURC, 100_000_000n * 10n ** 6n),
    mint(PROJECT_TOKEN, 1_000_000_000n * 10n ** 18n),
    start(dex.v3, sqrtPriceX96(v3, eurcWorth(v3))),
    start(dex.projectV3, sqrtPriceX96(projectWorth(projectV3), projectV3)),
    startV4(dex.v4Key, sqrtPriceX96(v4, eurcWorth(v4))),
    startV4(dex.v4NativeKey, sqrtPriceX96(native, eurcWorth(v4Native))),
    call('addV2', [dex.v2, v2, eurcWorth(v2)]),
    call('addV2', [dex.projectV2, projectWorth(projectV2), projectV2]),
    call('addV3', [dex.v3, -FINE.end, FINE.end, liquidity(v3, eurcWorth(v3))]),
    call('addV3', [dex.projectV3, -COARSE.end, COARSE.end, liquidity(projectWorth(projectV3), projectV3)]),
    call('addV4', [poolManager, dex.v4Key, -FINE.end, FINE.end, liquidity(v4, eurcWorth(v4))]),
    call('addV4', [poolManager, dex.v4NativeKey, -FINE.end, FINE.end, liquidity(native, eurcWorth(v4Native))]),
  ]);
}

interface Mined {
  readonly status: Hex;
  readonly contractAddress: Hex | null;
}

/** Sends all transactions, makes one block, and returns their receipts. Throws when one failed or did not fit into the block. */
async function mineAll(rpc: Rpc, miner: Miner, transactions: readonly SentTransaction[]): Promise<Mined[]> {
  const hashes: Hex[] = [];
  for (const transaction of transactions) hashes.push(await send(rpc, transaction));
  await miner.mine();
  const receipts = hashes.map((hash) => rpc<Mined | null>('eth_getTransactionReceipt', [hash]));
  return (await Promise.all(receipts)).map((receipt, at) => {
    if (receipt?.status !== '0x1')
      throw new Error(`step ${at} of preparing Uniswap ${receipt ? 'failed' : 'is missing'}`);
    return receipt;
  });
}

const require = createRequire(import.meta.url);

/** The files of the Uniswap packages with the code, each in its compiler's format. */
const FILES = {
  v2Factory: () => require.resolve('@uniswap/v2-core/build/UniswapV2Factory.json'),
  v3Factory: () => require.resolve('@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json'),
  poolManager: () => require.resolve('@uniswap/v4-core/out/PoolManager.sol/PoolManager.json'),
};

type BytecodeField = string | { readonly object: string };

/**
 * The deployment code of one of Uniswap's own contracts: the published bytecode, followed by the address that v2 and v4 take (the account that may set
 * fees). It is read on demand, because most networks do not need it.
 */
function uniswapDeployment(name: keyof typeof FILES, owner: Hex): Hex {
  const { bytecode }: { bytecode: BytecodeField } = JSON.parse(readFileSync(FILES[name](), 'utf8'));
  const code = (typeof bytecode === 'string' ? bytecode : bytecode.object).replace(/^0x/, '');
  return `0x${code}${encodeAbiParameters([{ type: 'address' }], [owner]).slice(2)}`;
}

/** The functions that are called on these contracts. */
const UNISWAP_ABI = parseAbi([
  'function createPair(address, address) returns (address)',
  'function getPair(address, address) view returns (address)',
  'function createPool(address, address, uint24) returns (address)',
  'function getPool(address, address, uint24) view returns (address)',
  'function initialize(uint160)',
]);

/** v4's `initialize` has the same name, but takes the pool's key. */
const POOL_MANAGER_ABI = parseAbi([
  'struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }',
  'function initialize(PoolKey key, uint160 sqrtPriceX96) returns (int24)',
]);

/** The key of a v4 pool. The pool's id is the key's hash. */
interface PoolKey {
  readonly currency0: Hex;
  readonly currency1: Hex;
  readonly fee: number;
  readonly tickSpacing: number;
  readonly hooks: Hex;
}

/** The id of a v4 pool: keccak-256 of its key, ABI-encoded. */
function poolIdOf({ currency0, currency1, fee, tickSpacing, hooks }: PoolKey): Hex {
  const words = ['address', 'address', 'uint24', 'int24', 'address'].map((type) => ({ type }));
  return keccak256(encodeAbiParameters(words, [currency0, currency1, fee, tickSpacing, hooks]));
}

/** A price as v3 and v4 keep it: the square root of amount1 / amount0 (base units), times 2^96. */
function sqrtPriceX96(amount0: bigint, amount1: bigint): bigint {
  return squareRoot((amount1 << 192n) / amount0);
}

/** The whole square root, by Newton's method. */
function squareRoot(value: bigint): bigint {
  if (value < 2n) return value;
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1);
  while (true) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
