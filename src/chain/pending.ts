import { type Header, headerCall, readHeader } from './block.ts';
import type { ChainClient } from './rpc/client.ts';
import { index, quantity, type RpcOptions, readOutcome } from './rpc/wire.ts';
import { type Receipt, readReceipt, receiptCall, type Transaction } from './transaction.ts';

// Why a transaction that a node keeps is not in a block.

export interface PendingState {
  /** Of the next transaction to be mined. */
  readonly accountNonce: number;
  /** Wei. */
  readonly balance: bigint;
  readonly newest: Header;
}

/** By one provider. The receipt is asked for last: mined meanwhile, its nonce never seems another's. */
export async function readPendingState(
  chain: ChainClient,
  { hash, from }: Pick<Transaction, 'hash' | 'from'>,
  options: RpcOptions,
): Promise<PendingState | { readonly receipt: Receipt }> {
  const [nonce, balance, header, settled] = await chain.batch(
    [
      { method: 'eth_getTransactionCount', params: [from, 'latest'] },
      { method: 'eth_getBalance', params: [from, 'latest'] },
      headerCall('latest'),
      receiptCall(hash),
    ],
    { ...options, fromOneProvider: true },
  );
  const receipt = readReceipt(settled, hash);
  if (receipt !== null) return { receipt };
  return {
    accountNonce: readOutcome(nonce, index, 'nonce'),
    balance: readOutcome(balance, quantity, 'balance'),
    newest: readHeader(header, 'latest'),
  };
}

type HeldBy = 'feeTooLow' | 'feeBelowFloor' | 'nonceGap' | 'nonceUsed' | 'balanceTooLow';

/** In wei; `floor` is null where it is not known. */
interface AskedFees {
  readonly nextBaseFee: bigint;
  readonly floor: bigint | null;
}

/**
 * What keeps a transaction out of the next block. Empty where the chain shows nothing:
 * 1. `nonceUsed`: another transaction took its nonce, so it is never mined; nothing else matters;
 * 2. `nonceGap`: lower nonces of the account come first;
 * 3. `feeBelowFloor`, else `feeTooLow`: its most per gas is below the chain's lowest fee, or below the next base fee;
 * 4. `balanceTooLow`: the account cannot pay its value and the most that its gas may cost.
 */
export function whatHolds(
  { nonce, gas, value, maxFeePerGas }: Pick<Transaction, 'nonce' | 'gas' | 'value' | 'maxFeePerGas'>,
  { accountNonce, balance }: Pick<PendingState, 'accountNonce' | 'balance'>,
  { nextBaseFee, floor }: AskedFees,
): HeldBy[] {
  if (nonce < accountNonce) return ['nonceUsed'];
  const held: HeldBy[] = [];
  if (nonce > accountNonce) held.push('nonceGap');
  if (floor !== null && maxFeePerGas < floor) held.push('feeBelowFloor');
  else if (maxFeePerGas < nextBaseFee) held.push('feeTooLow');
  if (balance < value + BigInt(gas) * maxFeePerGas) held.push('balanceTooLow');
  return held;
}
