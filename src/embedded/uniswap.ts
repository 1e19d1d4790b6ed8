import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { encodeAbiParameters, type Hex, keccak256, parseAbi } from 'viem';

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
export function uniswapDeployment(name: keyof typeof FILES, owner: Hex): Hex {
  const { bytecode }: { bytecode: BytecodeField } = JSON.parse(readFileSync(FILES[name](), 'utf8'));
  const code = (typeof bytecode === 'string' ? bytecode : bytecode.object).replace(/^0x/, '');
  return `0x${code}${encodeAbiParameters([{ type: 'address' }], [owner]).slice(2)}`;
}

/** The functions that are called on these contracts. */
export const UNISWAP_ABI = parseAbi([
  'function createPair(address, address) returns (address)',
  'function getPair(address, address) view returns (address)',
  'function createPool(address, address, uint24) returns (address)',
  'function getPool(address, address, uint24) view returns (address)',
  'function initialize(uint160)',
]);

/** v4's `initialize` has the same name, but takes the pool's key. */
export const POOL_MANAGER_ABI = parseAbi([
  'struct PoolKey { address currency0; address currency1; uint24 fee; int24 tickSpacing; address hooks; }',
  'function initialize(PoolKey key, uint160 sqrtPriceX96) returns (int24)',
]);

/** The key of a v4 pool. The pool's id is the key's hash. */
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
