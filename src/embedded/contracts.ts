import { setTimeout as delay } from 'node:timers/promises';
import { encodeAbiParameters, encodeDeployData, type Hex, keccak256, pad, toHex } from 'viem';
import { MIN_BASE_FEE } from './base-fee.ts';
import { type ArtifactName, artifacts } from './contracts/artifacts.ts';
import type { Miner } from './miner.ts';
import { type Rpc, toQuantity } from './rpc.ts';

/** Where Arc has USDC's ERC-20 face, its system log and Multicall3. */
export const USDC: Hex = '0x3600000000000000000000000000000000000000';
export const SYSTEM_LOG: Hex = '0xfffffffffffffffffffffffffffffffffffffffe';
export const MULTICALL3: Hex = '0xcA11bde05977b3631167028862bE2a173976CA11';

/** The canonical addresses of x402's `batch-settlement` scheme: its settlement contract, and what collects deposits by EIP-3009. */
export const BATCH_SETTLEMENT: Hex = '0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003';
export const DEPOSIT_COLLECTOR: Hex = '0x4020806089470a89826cB9fB1f4059150b550004';

/** Storage slots of Usdc.sol, in the order in which it declares them. */
const BALANCES_SLOT = 0n;
const SUPPLY_SLOT = pad('0x01');

/** Puts the contracts that Arc has from its first block, and those of payment channels, at their addresses, as code alone. */
export async function placeContracts(rpc: Rpc): Promise<void> {
  const placed: [Hex, ArtifactName][] = [
    [USDC, 'Usdc'],
    [SYSTEM_LOG, 'SystemLog'],
    [MULTICALL3, 'Multicall3'],
    [BATCH_SETTLEMENT, 'BatchSettlement'],
    [DEPOSIT_COLLECTOR, 'DepositCollector'],
  ];
  for (const [address, name] of placed) await rpc('anvil_setCode', [address, artifacts[name].runtime]);
}

/**
 * Gives an account USDC (base units of 6 decimals) from nowhere, by writing the token's storage between two blocks.
 * The contract itself has no way to mint, so nothing like it can be done through it; no log tells of it either.
 */
export function fundUsdc(rpc: Rpc, miner: Miner, address: Hex, units: bigint): Promise<void> {
  const slot = keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [address, BALANCES_SLOT]));
  return miner.between(async () => {
    for (const place of [slot, SUPPLY_SLOT]) {
      const before = BigInt(await rpc<Hex>('eth_getStorageAt', [USDC, place, 'latest']));
      await rpc('anvil_setStorageAt', [USDC, place, pad(toHex(before + units))]);
    }
  });
}

/** Gives an account native USDC (wei of 18 decimals) from nowhere, between two blocks. */
export function fundNative(rpc: Rpc, miner: Miner, address: Hex, wei: bigint): Promise<void> {
  return miner.between(async () => {
    const before = BigInt(await rpc<Hex>('eth_getBalance', [address, 'latest']));
    await rpc('anvil_setBalance', [address, toHex(before + wei)]);
  });
}

interface Receipt {
  readonly status: Hex;
  readonly contractAddress: Hex | null;
}

/** What an unlocked account asks the node to send. */
export interface SentTransaction {
  readonly from: Hex;
  readonly to?: Hex;
  readonly data?: Hex;
  readonly value?: Hex;
  readonly gas?: Hex;
}

/**
 * Offered with every transaction: five times the floor of the base fee, and the tip that the node itself would add.
 * Left to the node it would follow the base fee that the node expects next, which between a block and the setting of Arc's own fee
 * is EIP-1559's and less than the floor: such an offer is never mined, and nothing says so.
 */
const AMPLE_FEES = { maxFeePerGas: toQuantity(5n * MIN_BASE_FEE), maxPriorityFeePerGas: toQuantity(1_000_000_000n) };

/** Sends from an unlocked account, at fees that any block of ours takes, and returns the hash without waiting. */
export function send(rpc: Rpc, transaction: SentTransaction): Promise<Hex> {
  return rpc<Hex>('eth_sendTransaction', [{ ...AMPLE_FEES, ...transaction }]);
}

/** A deployment of one of our contracts, as the node takes it from an unlocked account. */
export function deployment(from: Hex, name: ArtifactName, args: readonly unknown[]): SentTransaction {
  const { abi, bytecode } = artifacts[name];
  return { from, data: encodeDeployData({ abi, bytecode, args: [...args] }) };
}

/** Longer than a block takes on a busy machine. */
const MINED_WITHIN_MS = 15_000;

/**
 * Sends from an unlocked account and returns the receipt once it is mined; throws when it reverts.
 * While mining is paused it makes the one block itself, because nobody else will.
 */
export async function sendAndWait(rpc: Rpc, miner: Miner, transaction: SentTransaction): Promise<Receipt> {
  const hash = await send(rpc, transaction);
  if (miner.paused()) await miner.mine();
  const deadline = Date.now() + MINED_WITHIN_MS;
  while (Date.now() < deadline) {
    const receipt = await rpc<Receipt | null>('eth_getTransactionReceipt', [hash]);
    if (receipt?.status === '0x0') throw new Error(`the transaction ${hash} reverted`);
    if (receipt) return receipt;
    await delay(25);
  }
  throw new Error(`the transaction ${hash} was not mined within ${MINED_WITHIN_MS / 1000} s`);
}
