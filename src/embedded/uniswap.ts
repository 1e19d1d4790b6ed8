import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { encodeAbiParameters, type Hex, keccak256, parseAbi } from 'viem';

const require = createRequire(import.meta.url);

/** Where the Uniswap packages ship the code, each in its own compiler's form. */
const FILES = {
  v2Factory: () => require.resolve('@uniswap/v2-core/build/UniswapV2Factory.json'),
  v3Factory: () => require.resolve('@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json'),
  poolManager: () => require.resolve('@uniswap/v4-core/out/PoolManager.sol/PoolManager.json'),
};

type BytecodeField = string | { readonly object: string };

/**
 * What deploys one of Uniswap's own contracts: the published bytecode, followed by the one address that v2 and v4 want (who may set fees).
 * Read when asked for, because most networks need none of it.
 */
export function uniswapDeployment(name: keyof typeof FILES, owner: Hex): Hex {
  const { bytecode }: { bytecode: BytecodeField } = JSON.parse(readFileSync(FILES[name](), 'utf8'));
  const code = (typeof bytecode === 'string' ? bytecode : bytecode.object).replace(/^0x/, '');
  return `0x${code}${encodeAbiParameters([{ type: 'address' }], [owner]).slice(2)}`;
}

/** What is called on them. */
export const UNISWAP_ABI = parseAbi([
  'function createPair(address, address) returns (address)',
  'function getPair(address, address) view returns (address)',
  'function createPool(address, address, uint24) returns (address)',
  'function getPool(address, address, uint24) view returns (address)',
  'function initialize(uint160)',
]);

/** The same word on another contract: v4 starts a pool by its key. */
export const POOL_MANAGER_ABI = parseAbi([
  'struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }',
  'function initialize(PoolKey key, uint160 sqrtPriceX96) returns (int24)',
]);

/** What a v4 pool is: the id is its hash. */
export interface PoolKey {
  readonly currency0: Hex;
  readonly currency1: Hex;
  readonly fee: number;
  readonly tickSpacing: number;
  readonly hooks: Hex;
}

/** The id of a v4 pool: keccak-256 of its key, ABI-encoded. */
export function poolIdOf({ currency0, currency1, fee, tickSpacing, hooks }: PoolKey): Hex {
  const words = ['address', 'address', 'uint24', 'int24', 'address'].map((type) => ({ type }));
  return keccak256(encodeAbiParameters(words, [currency0, currency1, fee, tickSpacing, hooks]));
}

/** A price as v3 and v4 keep it: the square root of amount1 / amount0 (base units), times 2^96. */
export function sqrtPriceX96(amount0: bigint, amount1: bigint): bigint {
  return squareRoot((amount1 << 192n) / amount0);
}

/** The whole square root, by Newton's method. */
export function squareRoot(value: bigint): bigint {
  if (value < 2n) return value;
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1);
  while (true) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
