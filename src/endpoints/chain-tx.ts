import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { methodOf } from '../chain/abi.ts';
import { headerCall, readHeader } from '../chain/block.ts';
import { knownContract } from '../chain/contracts.ts';
import { decodeSwaps } from '../chain/dex.ts';
import { decodeTransfers } from '../chain/erc20.ts';
import { type PendingState, readPendingState } from '../chain/pending.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { RpcOptions } from '../chain/rpc/wire.ts';
import { kindOf, type Log, type Receipt, readTransaction, type TransactionRead } from '../chain/transaction.ts';
import { AppError, NotFound, UpstreamFailed } from '../errors.ts';
import { inTime } from '../lib/tasks.ts';
import { formatCost, formatUsdc, NATIVE_DECIMALS } from '../lib/units.ts';
import { chainSource, hashParam, showPerGas } from './chain-fields.ts';
import type { Sources } from './sources.ts';
import { EXAMPLE_TX, MAX_SWAPS, MAX_TRANSFERS, txFields } from './tx-fields.ts';
import { showPending } from './tx-pending.ts';
import { nameTokens, showSwap } from './tx-swaps.ts';
import { readTokenUnits } from './tx-tokens.ts';
import { showTransfer } from './tx-transfers.ts';

type TxSources = Pick<Sources, 'chain' | 'clock' | 'usdc' | 'reads' | 'collected' | 'explorerUrl'>;

/** One transaction, what it paid and what it moved; of a pending one what keeps it. */
export const chainTx = defineEndpoint({
  path: '/chain/tx',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Transaction',
  summary:
    'Status, sender, recipient, method, nonce, gas price and fee in USDC of a transaction, every ERC-20 transfer and swap with symbols and human-readable amounts, and what keeps a pending one.',
  params: z.object({ hash: hashParam('The transaction hash') }),
  result: txFields,
  example: { params: { hash: EXAMPLE_TX.hash }, result: EXAMPLE_TX },
  async run({ hash }, sources: TxSources, signal) {
    const { chain, clock, explorerUrl } = sources;
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
      asOfBlock: head,
      source: chainSource(chain, clock),
    };
  },
});

/** How long a pending transaction's answer waits for what keeps it: far below the time that a handler has. */
const PENDING_WAIT_MS = 3000;

/**
 * Adds to a pending transaction what it waits for (`pendingState`), or its receipt when it was mined since the first read. That it is pending is an answer
 * without this too, so a chain that fails, is busy or is late leaves `pendingState` null.
 */
async function followPending(
  { chain, clock }: Pick<TxSources, 'chain' | 'clock'>,
  read: TransactionRead,
  options: RpcOptions,
): Promise<TransactionRead & { pendingState: PendingState | null }> {
  if (read.receipt !== null) return { ...read, pendingState: null };
  const late = () => new UpstreamFailed('chain', 'no answer in time');
  const asked = readPendingState(chain, read.transaction, options);
  const found = await inTime(asked, PENDING_WAIT_MS, clock, late).catch((error: unknown) => {
    if (error instanceof AppError && error.status >= 500) return null;
    throw error;
  });
  if (found === null || !('receipt' in found)) return { ...read, pendingState: found };
  return { ...read, ...found, head: Math.max(read.head, found.receipt.blockNumber), pendingState: null };
}

const PENDING = {
  ...{ status: 'pending' as const, final: false, block: null, at: null, confirmations: 0 },
  ...{ contractCreated: null, gasUsed: null, gasPrice: null, tip: null, feeUsdc: null, feeWei: null },
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

/** The transfers and swaps of a transaction's logs. Their tokens are read together. */
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
