import { decodeEventLog, type Hex, parseAbi } from 'viem';
import type { EmbeddedNetwork } from '../../../dev/network.ts';

// The chain read again block by block, and counted with other code than the service's.

export interface Tx {
  hash: Hex;
  from: Hex;
  to: Hex | null;
  input: Hex;
}
export interface Log {
  address: Hex;
  topics: [Hex, ...Hex[]];
  data: Hex;
  logIndex: Hex;
}
export interface Receipt extends Record<'status' | 'gasUsed' | 'effectiveGasPrice' | 'transactionHash', Hex> {
  contractAddress: Hex | null;
  logs: Log[];
}
export interface Block {
  number: number;
  at: number;
  hash: Hex;
  baseFee: bigint;
  utilisation: number;
  transactions: Tx[];
  receipts: Receipt[];
}

/** Blocks 1 up to the newest, with their receipts. */
export async function readChain(network: EmbeddedNetwork): Promise<Block[]> {
  const height = Number(await network.rpc<Hex>('eth_blockNumber'));
  return Promise.all(
    Array.from({ length: height }, async (_, at) => {
      const id = `0x${(at + 1).toString(16)}`;
      const raw = await network.rpc<Record<string, Hex> & { transactions: Tx[] }>('eth_getBlockByNumber', [id, true]);
      return {
        number: Number(raw.number),
        at: Number(raw.timestamp),
        hash: raw.hash!,
        baseFee: BigInt(raw.baseFeePerGas!),
        utilisation: Number(raw.gasUsed) / Number(raw.gasLimit),
        transactions: raw.transactions,
        receipts: await network.rpc<Receipt[]>('eth_getBlockReceipts', [id]),
      };
    }),
  );
}

export const gwei = (wei: bigint) => decimal(wei, 9);
/** Base units as a decimal string, by string arithmetic. */
export function decimal(units: bigint, decimals: number): string {
  const text = units.toString().padStart(decimals + 1, '0');
  return `${text.slice(0, -decimals)}.${text.slice(-decimals)}`.replace(/\.?0+$/, '');
}
/** A cost in wei as USDC, to the next sixth decimal. */
export const usdcCost = (wei: bigint) => decimal((wei + 10n ** 12n - 1n) / 10n ** 12n, 6);
/** 10^-9 USDC to the nearest sixth decimal. */
export const usdcAmount = (e9Amount: bigint) => decimal((e9Amount + 500n) / 1000n, 6);
/** What successful transactions of this hour and the one before paid above the base fee, in wei a gas, ascending. */
export function tipsIn(blocks: readonly Block[]): bigint[] {
  const since = hourOf(blocks.at(-1)!.at - 3600);
  const recent = blocks.filter(({ at }) => at >= since);
  const tips = recent.flatMap(({ baseFee, receipts }) =>
    receipts
      .filter(({ status }) => status === '0x1')
      .map(({ effectiveGasPrice }) => BigInt(effectiveGasPrice) - baseFee),
  );
  return tips.sort(ascending);
}
export const rank = <T>(sorted: readonly T[], percent: number) =>
  sorted[Math.max(Math.ceil((percent / 100) * sorted.length), 1) - 1]!;
export const ascending = (a: bigint | number, b: bigint | number) => (a < b ? -1 : Number(a > b));
export const hourOf = (at: number) => Math.floor(at / 3600) * 3600;

const TRANSFER_CALLS = ['0xa9059cbb', '0x23b872dd', '0xe3ee160e', '0xcf092995', '0xef55bec6', '0x88b7ab63'];
export function kindOf({ to, input }: Tx) {
  if (to === null) return 'deploy';
  if (input === '0x') return 'nativeTransfer';
  return TRANSFER_CALLS.includes(input.slice(0, 10)) ? 'tokenTransfer' : 'contractCall';
}

export interface Created {
  address: Hex;
  deployer: Hex;
  transaction: Hex;
  block: number;
  at: number;
}

/** Every contract that a transaction created. */
export function createdIn(blocks: readonly Block[]): Created[] {
  return blocks.flatMap(({ number, at, transactions, receipts }) =>
    receipts.flatMap(({ contractAddress, transactionHash, status }, index) =>
      contractAddress && status === '0x1'
        ? [
            {
              address: contractAddress,
              deployer: transactions[index]!.from,
              transaction: transactionHash,
              block: number,
              at,
            },
          ]
        : [],
    ),
  );
}

const SWAPS = parseAbi([
  'event Swap(address indexed sender, uint256 amount0In, uint256 amount1In, uint256 amount0Out, uint256 amount1Out, address indexed to)',
  'event Swap(address indexed sender, address indexed recipient, int256 amount0, int256 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick)',
  'event Swap(bytes32 indexed id, address indexed sender, int128 amount0, int128 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick, uint24 fee)',
  'event Sync(uint112 reserve0, uint112 reserve1)',
]);

export interface Trade {
  symbol: string;
  venue: string;
  address: Hex;
  at: number;
  block: number;
  transaction: Hex;
  baseE9: bigint;
  usdcE9: bigint;
  /** The pool's address or v4 id. */
  pool: string;
  side: 'buy' | 'sell';
  /** Whole USDC for a whole token at which the pool stood before and after; null when nothing before it said so. */
  before: number | null;
  after: number;
  /** Whole USDC in the pool (v2), or in one of constant product that is as deep. */
  reserve: number;
}

interface Depth {
  price: number;
  reserve: number;
}

/** The pool as its own reserves, or its price and liquidity, describe it. */
function depthOf(args: Record<string, bigint>, pool: { usdc: number; base: number; usdcFirst: boolean }): Depth {
  const root = Number(args.sqrtPriceX96 ?? 0n) / 2 ** 96;
  const zero = args.reserve0 === undefined ? Number(args.liquidity) / root : Number(args.reserve0);
  const one = args.reserve1 === undefined ? Number(args.liquidity) * root : Number(args.reserve1);
  const [usdc, base] = pool.usdcFirst ? [zero, one] : [one, zero];
  return { price: usdc / 10 ** pool.usdc / (base / 10 ** pool.base), reserve: usdc / 10 ** pool.usdc };
}

/** To 10^-9, half up. */
export const e9 = (amount: bigint, decimals: number) => {
  const size = amount < 0n ? -amount : amount;
  return (size * 10n ** 9n * 2n + 10n ** BigInt(decimals)) / (2n * 10n ** BigInt(decimals));
};

/** Every swap in the pools that the network was made with, in the chain's order. */
export function tradesIn(network: EmbeddedNetwork, blocks: readonly Block[]): Trade[] {
  const { v2, v3, v4PoolId, v4NativePoolId, projectV2, projectV3, poolManager } = network.pools!;
  const pools = new Map<string, { symbol: string; venue: string; usdc: number; base: number; usdcFirst: boolean }>(
    [
      [v2, { symbol: 'EURC', venue: 'Uniswap v2', usdc: 6, base: 6, usdcFirst: true }],
      [v3, { symbol: 'EURC', venue: 'Uniswap v3', usdc: 6, base: 6, usdcFirst: true }],
      [v4PoolId, { symbol: 'EURC', venue: 'Uniswap v4', usdc: 6, base: 6, usdcFirst: true }],
      [v4NativePoolId, { symbol: 'EURC', venue: 'Uniswap v4', usdc: 18, base: 6, usdcFirst: true }],
      [projectV2, { symbol: 'CALL', venue: 'Uniswap v2', usdc: 6, base: 18, usdcFirst: false }],
      [projectV3, { symbol: 'CALL', venue: 'Uniswap v3', usdc: 6, base: 18, usdcFirst: false }],
    ].map(([id, pool]) => [String(id).toLowerCase(), pool as never]),
  );
  // A v2 pair writes its new reserves right before its swap, so those before it are two events back.
  const stood = new Map<string, Depth>();
  const reserves = new Map<string, Depth>();
  return blocks.flatMap(({ number, at, receipts }) =>
    receipts.flatMap(({ logs, transactionHash }) =>
      logs.flatMap((log): Trade[] => {
        const id = (log.address === poolManager.toLowerCase() ? log.topics[1] : log.address)?.toLowerCase() ?? '';
        const pool = pools.get(id);
        if (!pool) return [];
        let args: Record<string, bigint>;
        try {
          args = decodeEventLog({ abi: SWAPS, data: log.data, topics: log.topics }).args as never;
        } catch {
          return [];
        }
        if (args.reserve0 !== undefined) {
          const before = reserves.get(id);
          if (before) stood.set(id, before);
          reserves.set(id, depthOf(args, pool));
          return [];
        }
        const before = stood.get(id)?.price ?? null;
        const { price, reserve } = reserves.get(id) ?? depthOf(args, pool);
        stood.set(id, { price, reserve });
        const [zero, one] =
          args.amount0In === undefined
            ? [args.amount0!, args.amount1!]
            : [args.amount0In - args.amount0Out!, args.amount1In! - args.amount1Out!];
        const [usdc, base] = pool.usdcFirst ? [zero, one] : [one, zero];
        const amounts = { usdcE9: e9(usdc, pool.usdc), baseE9: e9(base, pool.base) };
        // v4 writes what the swapper got, the others what the pool got.
        const gotBase = log.topics.length === 3 && args.fee !== undefined ? base! > 0n : base! < 0n;
        const state = { pool: id, side: gotBase ? ('buy' as const) : ('sell' as const), before, after: price, reserve };
        return [
          { ...pool, ...state, address: log.address, at, block: number, transaction: transactionHash, ...amounts },
        ];
      }),
    ),
  );
}

/** USDC by base, half up, with eight decimals and at least eight digits. */
export function rateOf(usdc: bigint, base: bigint): string {
  let decimals = 8;
  while ((usdc * 10n ** BigInt(decimals)) / base < 10n ** 7n) decimals += 1;
  return decimal((usdc * 2n * 10n ** BigInt(decimals) + base) / (2n * base), decimals);
}
export const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);
export const ONE = 10n ** 9n;

interface Moved extends Record<'from' | 'to', string> {
  address: Hex;
  amount: bigint;
  at: number;
}

/** Every ERC-20 movement, from the tokens' own logs. */
export function transfersIn(blocks: readonly Block[]): Moved[] {
  const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const logs = blocks.flatMap(({ at, receipts }) =>
    receipts.flatMap((receipt) => receipt.logs.map((log) => ({ ...log, at }))),
  );
  return logs
    .filter(({ topics }) => topics[0] === TRANSFER)
    .map(({ address, topics, data, at }) => ({
      address,
      from: `0x${topics[1]!.slice(26)}`,
      to: `0x${topics[2]!.slice(26)}`,
      amount: BigInt(data),
      at,
    }));
}

/** The blocks of each account's transactions: those that it sent, that were addressed to it, or that created it. */
export function seenIn(blocks: readonly Block[]): Map<string, { block: number; at: number }[]> {
  const seen = new Map<string, { block: number; at: number }[]>();
  for (const { number, at, transactions, receipts } of blocks) {
    transactions.forEach(({ from, to }, index) => {
      const { status, contractAddress } = receipts[index]!;
      const created = status === '0x1' ? contractAddress : null;
      for (const account of new Set([from, to, created])) {
        if (account) seen.set(account, [...(seen.get(account) ?? []), { block: number, at }]);
      }
    });
  }
  return seen;
}

/** What a contract answers to `symbol()`, cut out of the ABI encoding by hand; null when it does not. */
export async function symbolOf(network: EmbeddedNetwork, address: Hex): Promise<string | null> {
  const call = network.rpc<Hex>('eth_call', [{ to: address, data: '0x95d89b41' }, 'latest']);
  const answer = await call.catch(() => '0x');
  const length = Number(`0x${answer.slice(66, 130)}`);
  return answer === '0x' ? null : Buffer.from(answer.slice(130, 130 + 2 * length), 'hex').toString();
}

/** The figures of `/v1/activity` for each hour. */
export function activityOf(blocks: readonly Block[]) {
  return [...Map.groupBy(blocks, ({ at }) => hourOf(at))].map(([at, own]) => {
    const kinds = own.flatMap(({ transactions }) => transactions.map(kindOf));
    const count = (kind: string) => kinds.filter((candidate) => candidate === kind).length;
    const operations = {
      deploy: count('deploy'),
      nativeTransfer: count('nativeTransfer'),
      tokenTransfer: count('tokenTransfer'),
      contractCall: count('contractCall'),
    };
    return { at, blocks: own.length, transactions: kinds.length, operations };
  });
}
