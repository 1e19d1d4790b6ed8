import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { headerCall, readHeader } from '../../chain/block.ts';
import { knownContract, methodOf } from '../../chain/contracts.ts';
import { decodeSwaps, movedToken, type Swap } from '../../chain/dex.ts';
import { ARC_SYSTEM_ADDRESS, decodeTransfers, readTokens, type Transfer } from '../../chain/erc20.ts';
import { nextBaseFee } from '../../chain/fees.ts';
import { type PendingState, readPendingState, whatHolds } from '../../chain/pending.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import type { RpcOptions } from '../../chain/rpc/wire.ts';
import {
  kindOf,
  type Log,
  type Receipt,
  readTransaction,
  type Transaction,
  type TransactionRead,
} from '../../chain/transaction.ts';
import type { CollectedPool } from '../../collector/store/trades.ts';
import { NotFound } from '../../errors.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { formatCost, formatGwei, formatUnits, formatUsdc, NATIVE_DECIMALS } from '../../lib/units.ts';
import { floorOf, notBelow } from '../fees/fields.ts';
import { EXAMPLE_READ_AT, field, hashParam, readAt, readAtFields, showPerGas } from '../fields.ts';
import { liveOr } from '../freshness.ts';
import type { Sources } from '../sources.ts';

// A transaction, whole: its block gives the time, the price of gas and the fee, its logs the transfers and the swaps,
// whose tokens are read together. While it is pending, what keeps it out of the next block is read.

const side = (description: string) =>
  field.object(description, {
    token: field.orNull(
      `The token; ${ARC_SYSTEM_ADDRESS} is native USDC; null when no single transfer of the transaction shows it`,
      field.address('The token'),
    ),
    symbol: field.textOrNull('As the contract says, not proof of anything'),
    decimals: field.integerOrNull('null when unknown'),
    amount: field.alsoNull('null without decimals', field.decimal('In whole tokens')),
    amountRaw: field.bigInteger('In base units'),
  });

const swapField = z.strictObject({
  pool: z
    .string()
    .regex(/^0x(?:[0-9a-f]{40}|[0-9a-f]{64})$/)
    .meta({ description: 'Address of the pool; its 32-byte id in Uniswap v4' }),
  contract: field.address('Emitter of the log: the pool, or Uniswap v4’s pool manager'),
  family: z
    .enum(['v2', 'v3', 'v4'])
    .meta({ description: 'Of which Uniswap version the event is; Slipstream pools emit v3’s' }),
  venue: field.textOrNull(
    'Where it was traded, for a collected pool or a known contract; null: anyone can make a contract that emits ' +
      'such events',
  ),
  sold: side('What the pool got'),
  bought: side('What the pool gave'),
  logIndex: field.count('Position of the log in its block'),
});

const transferField = z.strictObject({
  token: field.address(`Emitter of the log; ${ARC_SYSTEM_ADDRESS} is Arc's native USDC (18 decimals)`),
  symbol: field.textOrNull('As the contract says, not proof of anything; null when it says none'),
  decimals: field.integerOrNull('null when the contract does not say'),
  from: field.address('Sender; the zero address when minted'),
  to: field.address('Recipient; the zero address when burned'),
  amount: field.alsoNull('null without decimals', field.decimal('In whole tokens')),
  amountRaw: field.bigInteger('In base units'),
  logIndex: field.count('Position of the log in its block'),
});

const pendingField = field.objectOrNull(
  'While it is pending: since when it was seen, and what keeps it. null once it is mined',
  {
    firstSeenAt: field.at(
      'When this process of the service was first asked about it while it was pending, since its start. It was sent ' +
        'earlier',
    ),
    heldBy: field.orNull(
      'What keeps it out of the next block: another transaction has its nonce, so it is never mined; lower ' +
        'nonces of the sender come first; its maxFeePerGas is below the chain’s lowest fee, or below the next base ' +
        'fee; the sender cannot pay value and gas. Empty: nothing that the chain shows. null: not known, see ' +
        'unknownReason',
      z.array(z.enum(['nonceUsed', 'nonceGap', 'feeBelowFloor', 'feeTooLow', 'balanceTooLow'])),
    ),
    unknownReason: field.textOrNull('Why what keeps it is not known; null when it is'),
    accountNonce: field.countOrNull(
      'Nonce of the next transaction of the sender to be mined; the difference to its own is the gap',
    ),
    nextBaseFee: field.perGas('Base fee of the next block').nullable(),
    floorGwei: field.orNull('The lowest base fee of the chain, in gwei; null while unknown', field.decimal('In gwei')),
    asOfBlock: field.countOrNull('The block at which this was read'),
  },
);

/** A bound of the token reads of a call. A usual payment, swap or airdrop has far fewer transfers. */
const MAX_TRANSFERS = 200;
/** A route through many pools has some ten swaps. */
const MAX_SWAPS = 50;

const txFields = z.strictObject({
  hash: field.hash('The transaction, in lower case'),
  status: z.enum(['pending', 'success', 'reverted']),
  final: field.boolean(
    'true once it is in a block; Arc’s blocks are final. false while pending: it may still succeed, revert, be ' +
      'replaced or be dropped, so ask again before relying on it',
  ),
  block: field.integerOrNull('null while pending'),
  at: field.orNull('Unix seconds of the block; null while pending', field.at('Time of the block')),
  confirmations: field.count('Blocks from its own to asOfBlock, both counted; 0 while pending. On Arc one is enough'),
  from: field.address('Sender'),
  to: field.orNull('null when it creates a contract', field.address('Recipient')),
  toLabel: field.textOrNull('Name of the recipient, where it is a contract that we know; null: unknown'),
  contractCreated: field.orNull('null when it created none', field.address('The new contract')),
  kind: z.enum(['deploy', 'nativeTransfer', 'tokenTransfer', 'contractCall']).meta({
    description: 'No recipient; no input; input calls a transfer of ERC-20 or EIP-3009; anything else',
  }),
  method: field.objectOrNull(
    'The function that it calls; null without one: it deploys, or has less than four bytes of input',
    {
      selector: z
        .string()
        .regex(/^0x[0-9a-f]{8}$/)
        .meta({ description: 'The first four bytes of its input' }),
      name: field.textOrNull('Of the function; null for one that we do not know'),
      signature: field.textOrNull(
        'Name and types of the function with this selector; a contract may give it another meaning',
      ),
    },
  ),
  nonce: field.count('Its number among the transactions of the sender, from 0'),
  valueUsdc: field.usdc('Native value sent along, in USDC, rounded to six decimals'),
  valueWei: field.bigInteger('The same, exact, in 10^-18 USDC'),
  gasLimit: field.count('The most gas that it may use'),
  gasUsed: field.integerOrNull('null while pending'),
  maxFeePerGas: field.perGas('The most that it pays for a unit of gas: its maximum, or its gas price'),
  maxPriorityFeePerGas: field.alsoNull(
    'null for one with a gas price in place of a maximum',
    field.perGas('The tip that it offers'),
  ),
  gasPrice: field.alsoNull('null while pending', field.perGas('Paid for a unit of gas: base fee and tip')),
  tip: field.alsoNull('null while pending', field.perGas('The part of gasPrice above its block’s base fee')),
  feeUsdc: field.orNull(
    'Gas used at its price in USDC, rounded up to six decimals; null while pending',
    field.usdc('Fee in USDC'),
  ),
  feeWei: field.bigInteger('The same, exact, in 10^-18 USDC').nullable(),
  transfers: z.array(transferField).meta({
    description:
      "Every ERC-20 movement, each once: where Arc logs one USDC movement twice, the token's own log is listed. " +
      'ERC-721 is left out',
  }),
  transfersTruncated: field.boolean(`true when there are more than the ${MAX_TRANSFERS} listed`),
  swaps: z.array(swapField).meta({
    description:
      `Exchanges in pools, by their Swap events (Uniswap v2, v3, v4 and alike). A token of ${ARC_SYSTEM_ADDRESS} is ` +
      'native USDC',
  }),
  swapsTruncated: field.boolean(`true when there are more than the ${MAX_SWAPS} listed`),
  pending: pendingField,
  explorerUrl: field.textOrNull('The transaction at the chain’s explorer; null without one'),
  ...readAtFields,
});

const EXAMPLE_TX: z.output<typeof txFields> = {
  hash: `0x${'3e'.repeat(32)}`,
  status: 'success',
  final: true,
  block: 32249990,
  at: 1795199395,
  confirmations: 11,
  from: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
  to: '0x3600000000000000000000000000000000000000',
  toLabel: 'USDC',
  contractCreated: null,
  kind: 'tokenTransfer',
  method: { selector: '0xa9059cbb', name: 'transfer', signature: 'transfer(address,uint256)' },
  nonce: 213,
  valueUsdc: '0',
  valueWei: '0',
  gasLimit: 65000,
  gasUsed: 51000,
  maxFeePerGas: { wei: '30130000000', gwei: '30.13' },
  maxPriorityFeePerGas: { wei: '10000000', gwei: '0.01' },
  gasPrice: { wei: '20130000000', gwei: '20.13' },
  tip: { wei: '10000000', gwei: '0.01' },
  feeUsdc: '0.001027',
  feeWei: '1026630000000000',
  transfers: [
    {
      token: '0x3600000000000000000000000000000000000000',
      symbol: 'USDC',
      decimals: 6,
      from: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
      to: '0xca11bde05977b3631167028862be2a173976ca11',
      amount: '12.5',
      amountRaw: '12500000',
      logIndex: 18,
    },
  ],
  transfersTruncated: false,
  swaps: [],
  swapsTruncated: false,
  pending: null,
  explorerUrl: `https://explorer.arc.io/tx/0x${'3e'.repeat(32)}`,
  ...EXAMPLE_READ_AT,
};

type TxSources = Pick<Sources, 'chain' | 'clock' | 'usdc' | 'reads' | 'collected' | 'explorerUrl'>;

export const chainTx = defineEndpoint({
  path: '/chain/tx',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Transaction',
  summary:
    'Status, sender, recipient, method, nonce, gas price and fee in USDC of a transaction, every ERC-20 transfer and ' +
    'swap with symbols and human-readable amounts, and what keeps a pending one.',
  notFor: 'finding transactions: it needs the hash',
  tags:
    'tx receipt lookup, block explorer, payment confirmed, went through, failed or reverted, who sent, ' +
    'who received',
  ofChain: true,
  params: z.object({ hash: hashParam('The transaction hash') }),
  result: txFields,
  example: { params: { hash: EXAMPLE_TX.hash }, result: EXAMPLE_TX },
  async run({ hash }, sources: TxSources, signal) {
    const { chain, explorerUrl } = sources;
    const read = await readTransaction(chain, hash, { signal });
    if (read === null)
      throw new NotFound(`no node knows a transaction ${hash}; one that was just sent may not be in a block yet`);
    const { transaction, receipt, head, pendingState } = await followPending(sources, read, { signal });
    const [mining, moves] = await Promise.all([
      receipt === null ? PENDING : describeMining(chain, receipt, head, { signal }),
      describeMoves(sources, receipt?.logs ?? [], head, { signal }),
    ]);
    const { to, input, nonce, value, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction;
    return {
      hash,
      ...mining,
      from: transaction.from,
      to: to ?? null,
      toLabel: to == null ? null : knownContract(chain.chainId, to),
      kind: kindOf(transaction),
      method: to == null ? null : methodOf(input),
      nonce,
      valueUsdc: formatUsdc(value, NATIVE_DECIMALS),
      valueWei: value.toString(),
      gasLimit: gas,
      maxFeePerGas: showPerGas(maxFeePerGas),
      maxPriorityFeePerGas: maxPriorityFeePerGas == null ? null : showPerGas(maxPriorityFeePerGas),
      ...moves,
      pending: receipt === null ? showPending(transaction, pendingState, sources) : null,
      explorerUrl: explorerUrl === null ? null : `${explorerUrl}/tx/${hash}`,
      ...readAt(head, sources),
    };
  },
});

/** That a transaction is pending is an answer by itself: a chain that fails or is late leaves `pendingState` null. */
async function followPending(
  { chain, clock }: Pick<TxSources, 'chain' | 'clock'>,
  read: TransactionRead,
  options: RpcOptions,
): Promise<TransactionRead & { pendingState: PendingState | null }> {
  if (read.receipt !== null) return { ...read, pendingState: null };
  const found = await liveOr(() => readPendingState(chain, read.transaction, options), null, clock);
  if (found === null || !('receipt' in found)) return { ...read, pendingState: found };
  return { ...read, ...found, head: Math.max(read.head, found.receipt.blockNumber), pendingState: null };
}

const PENDING = {
  status: 'pending' as const,
  final: false,
  block: null,
  at: null,
  confirmations: 0,
  contractCreated: null,
  gasUsed: null,
  gasPrice: null,
  tip: null,
  feeUsdc: null,
  feeWei: null,
};

async function describeMining(chain: ChainClient, receipt: Receipt, head: number, options: RpcOptions) {
  const { blockNumber, status, gasUsed, effectiveGasPrice, contractAddress } = receipt;
  const [outcome] = await chain.batch([headerCall(blockNumber)], options);
  const { at, baseFeeWei } = readHeader(outcome, blockNumber);
  const fee = BigInt(gasUsed) * effectiveGasPrice;
  const tip = baseFeeWei === null || effectiveGasPrice < baseFeeWei ? null : effectiveGasPrice - baseFeeWei;
  return {
    status: status === '0x1' ? ('success' as const) : ('reverted' as const),
    final: true,
    block: blockNumber,
    at,
    confirmations: head - blockNumber + 1,
    contractCreated: contractAddress ?? null,
    gasUsed,
    gasPrice: showPerGas(effectiveGasPrice),
    tip: tip === null ? null : showPerGas(tip),
    feeUsdc: formatCost(fee),
    feeWei: fee.toString(),
  };
}

async function describeMoves(sources: TxSources, logs: readonly Log[], block: number, options: RpcOptions) {
  const moved = decodeTransfers(logs, sources.usdc);
  const swapped = decodeSwaps(logs);
  const transfers = moved.slice(0, MAX_TRANSFERS);
  const swaps = swapped.slice(0, MAX_SWAPS).map((swap) => nameTokens(swap, moved, sources));
  const traded = swaps.flatMap(({ sold, bought }) => [sold.token, bought.token].filter((token) => token !== null));
  const tokens = [...transfers.map(({ token }) => token), ...traded];
  const unitsOf = await readTokenUnits(sources.chain, tokens, block, options);
  return {
    transfers: transfers.map((transfer) => showTransfer(transfer, unitsOf(transfer.token))),
    transfersTruncated: moved.length > transfers.length,
    swaps: swaps.map((swap) => showSwap(swap, unitsOf)),
    swapsTruncated: swapped.length > swaps.length,
  };
}

interface TradedSwap {
  readonly swap: Swap;
  readonly venue: string | null;
  readonly sold: SwapSide;
  readonly bought: SwapSide;
}

interface SwapSide {
  readonly token: `0x${string}` | null;
  readonly amount: bigint;
}

/**
 * Finds a swap's tokens without reading the chain: the collector knows the pool and its emitter, or exactly one token
 * of the transaction moved into or out of the pool by the swap's amount.
 */
function nameTokens(
  swap: Swap,
  transfers: readonly Transfer[],
  { reads, usdc, chain }: Pick<Sources, 'reads' | 'usdc' | 'chain'>,
): TradedSwap {
  const { pool, contract, amount0, amount1 } = swap;
  const collected = reads.pool(pool);
  const known = collected?.emitter === contract ? collected : null;
  const tokens = known === null ? [null, null] : tokensOf(known, usdc);
  const sides = [amount0, amount1].map((amount, at) => ({ amount, token: tokens[at] ?? null }));
  const pick = (isSold: boolean): SwapSide => {
    const found = sides.find((candidate) => candidate.amount > 0n === isSold) ?? { amount: 0n, token: null };
    const amount = isSold ? found.amount : -found.amount;
    const moved = movedToken(transfers, isSold ? { to: contract } : { from: contract }, amount);
    return { amount, token: found.token ?? moved };
  };
  return { swap, venue: known?.venue ?? knownContract(chain.chainId, contract), sold: pick(true), bought: pick(false) };
}

/** USDC of 18 decimals is the native currency. */
function tokensOf({ token, tokenFirst, usdcDecimals }: CollectedPool, usdc: `0x${string}`): `0x${string}`[] {
  const money = usdcDecimals === NATIVE_DECIMALS ? ARC_SYSTEM_ADDRESS : usdc;
  return tokenFirst ? [token, money] : [money, token];
}

/** Members are null where the token's contract does not say. */
interface TokenUnits {
  readonly symbol: string | null;
  readonly decimals: number | null;
}

const NATIVE_USDC: TokenUnits = { symbol: 'USDC', decimals: NATIVE_DECIMALS };
const UNKNOWN_UNITS: TokenUnits = { symbol: null, decimals: null };

/** Reads in one batch. The system's address stands for native USDC and is not read. */
async function readTokenUnits(
  chain: ChainClient,
  tokens: readonly `0x${string}`[],
  block: number,
  options: RpcOptions,
): Promise<(token: string) => TokenUnits> {
  const contracts = [...new Set(tokens)].filter((token) => token !== ARC_SYSTEM_ADDRESS);
  const units = new Map<string, TokenUnits>([[ARC_SYSTEM_ADDRESS, NATIVE_USDC]]);
  for (const token of await readTokens(chain, contracts, block, options)) {
    if (token !== null) units.set(token.address, token);
  }
  return (token) => units.get(token) ?? UNKNOWN_UNITS;
}

function showTransfer({ token, from, to, amount, logIndex }: Transfer, units: TokenUnits) {
  return { token, from, to, ...showAmount(amount, units), logIndex };
}

function showAmount(amount: bigint, { symbol, decimals }: TokenUnits) {
  const whole = decimals === null ? null : formatUnits(amount, decimals);
  return { symbol, decimals, amount: whole, amountRaw: amount.toString() };
}

function showSwap(
  { swap: { pool, contract, family, logIndex }, venue, sold, bought }: TradedSwap,
  unitsOf: (token: string) => TokenUnits,
): z.output<typeof swapField> {
  const show = ({ token, amount }: SwapSide) => ({
    token,
    ...showAmount(amount, token === null ? UNKNOWN_UNITS : unitsOf(token)),
  });
  return { pool, contract, family, venue, sold: show(sold), bought: show(bought), logIndex };
}

/** `state` is null when the chain did not say it. */
function showPending(
  transaction: Transaction,
  state: PendingState | null,
  sources: Pick<Sources, 'chain' | 'clock' | 'reads' | 'collected'>,
): z.output<typeof pendingField> {
  const seen = { firstSeenAt: firstSeenAt(sources, transaction.hash) };
  if (state === null) return { ...seen, ...UNKNOWN_STATE };
  const { accountNonce, newest } = state;
  const floor = floorOf(sources, newest.at);
  const next = notBelow(nextBaseFee(newest), floor).wei;
  return {
    ...seen,
    heldBy: whatHolds(transaction, state, { nextBaseFee: next, floor }),
    unknownReason: null,
    accountNonce,
    nextBaseFee: showPerGas(next),
    floorGwei: floor === null ? null : formatGwei(floor),
    asOfBlock: newest.number,
  };
}

const UNKNOWN_STATE = {
  heldBy: null,
  unknownReason: 'The provider that knows the transaction did not say what its sender and the next block are at.',
  accountNonce: null,
  nextBaseFee: null,
  floorGwei: null,
  asOfBlock: null,
};

/** So many keys take about 2 MB of memory. */
const REMEMBERED = 10_000;

/** Each client has one memory, so that two chains in one process never mix. */
const memories = new WeakMap<ChainClient, FirstSeen>();

/** When the process was first asked about a pending transaction, in Unix seconds. */
function firstSeenAt({ chain, clock }: Pick<Sources, 'chain' | 'clock'>, hash: string): number {
  const memory = memories.get(chain) ?? createFirstSeen(REMEMBERED);
  memories.set(chain, memory);
  return Math.floor(memory(hash, clock.nowMs()) / 1000);
}

/** The time of a key's first call, in Unix milliseconds. */
type FirstSeen = (key: string, nowMs: number) => number;

/** Forgets the oldest keys first, so that no caller can fill the memory. */
export function createFirstSeen(maxKeys: number): FirstSeen {
  const times = boundedMap<string, number>(maxKeys);
  return (key, nowMs) => {
    const known = times.peek(key);
    if (known === undefined) times.set(key, nowMs);
    return known ?? nowMs;
  };
}
