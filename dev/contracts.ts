import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Abi, encodeAbiParameters, encodeDeployData, type Hex, keccak256, pad, toHex } from 'viem';
import { MIN_BASE_FEE, type Miner, type Rpc, toQuantity } from './miner.ts';

/** Arc's addresses of the USDC contract, the system log and Multicall3. */
export const USDC: Hex = '0x3600000000000000000000000000000000000000';
export const SYSTEM_LOG: Hex = '0xfffffffffffffffffffffffffffffffffffffffe';
export const MULTICALL3: Hex = '0xcA11bde05977b3631167028862bE2a173976CA11';

/** The canonical addresses of x402's `batch-settlement` scheme: its settlement contract, and what collects deposits by EIP-3009. */
export const BATCH_SETTLEMENT: Hex = '0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003';
export const DEPOSIT_COLLECTOR: Hex = '0x4020806089470a89826cB9fB1f4059150b550004';

/** The contract of EIP-2935, into which each block writes the hash of the one before. */
const BLOCK_HISTORY: Hex = '0x0000F90827F1C53a10cb7A02335B175320002935';

/** Storage slots of Usdc.sol, in the order in which it declares them. */
const BALANCES_SLOT = 0n;
const SUPPLY_SLOT = pad('0x01');

/** Writes the code of the contracts that Arc has from its first block, and of those of payment channels, to their addresses. */
export async function placeContracts(rpc: Rpc): Promise<void> {
  const placed: [Hex, ArtifactName][] = [
    [USDC, 'Usdc'],
    [SYSTEM_LOG, 'SystemLog'],
    [MULTICALL3, 'Multicall3'],
    [BATCH_SETTLEMENT, 'BatchSettlement'],
    [DEPOSIT_COLLECTOR, 'DepositCollector'],
  ];
  for (const [address, name] of placed) await rpc('anvil_setCode', [address, artifacts[name].runtime]);
  // Nothing here reads block hashes. The node hashes the contract's whole storage anew for each block, so blocks took the longer the more there were.
  await rpc('anvil_setCode', [BLOCK_HISTORY, '0x']);
}

/**
 * Creates USDC (base units of 6 decimals) for an account, by writing the token's storage between two blocks.
 * The contract itself cannot mint. The change has no log.
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

/** Creates native USDC (wei of 18 decimals) for an account, between two blocks. */
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

/** A transaction that the node sends from an unlocked account. */
export interface SentTransaction {
  readonly from: Hex;
  readonly to?: Hex;
  readonly data?: Hex;
  readonly value?: Hex;
  readonly gas?: Hex;
}

/**
 * The fees of every transaction: five times the floor of the base fee, and the node's own default tip.
 * The node would use the base fee that it expects next. Right after a block, before Arc's own fee is set, that is EIP-1559's fee, which is below the
 * floor. Such a transaction is never mined, and the node reports no error.
 */
const AMPLE_FEES = { maxFeePerGas: toQuantity(5n * MIN_BASE_FEE), maxPriorityFeePerGas: toQuantity(1_000_000_000n) };

/** Sends from an unlocked account, with fees that are enough for every block, and returns the hash without waiting. */
export function send(rpc: Rpc, transaction: SentTransaction): Promise<Hex> {
  return rpc<Hex>('eth_sendTransaction', [{ ...AMPLE_FEES, ...transaction }]);
}

/** The transaction that deploys one of our contracts from an unlocked account. */
export function deployment(from: Hex, name: ArtifactName, args: readonly unknown[]): SentTransaction {
  const { abi, bytecode } = artifacts[name];
  return { from, data: encodeDeployData({ abi, bytecode, args: [...args] }) };
}

/** Longer than a block takes on a busy machine. */
const MINED_WITHIN_MS = 15_000;

/**
 * Sends from an unlocked account and returns the receipt once it is mined; throws when it reverts.
 * While mining is paused it makes one block itself.
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

/** A compiled contract: `bytecode` creates it, `runtime` is the code on the chain afterwards. */
export interface Artifact {
  readonly abi: Abi;
  readonly bytecode: Hex;
  readonly runtime: Hex;
}

/** The contracts of this directory. */
export type ArtifactName =
  | 'BatchSettlement'
  | 'DepositCollector'
  | 'LegacyToken'
  | 'Multicall3'
  | 'Oracle'
  | 'PayerReader'
  | 'SmartWallet'
  | 'StoppedUsdc'
  | 'SystemLog'
  | 'Token'
  | 'Trader'
  | 'Usdc';

/** Committed, so that nothing is compiled to run; `npm run contracts` writes it. */
export const ARTIFACTS_FILE = new URL('./artifacts.json', import.meta.url);

/** The compiled contracts by name, read once. */
export const artifacts: Readonly<Record<ArtifactName, Artifact>> = JSON.parse(readFileSync(ARTIFACTS_FILE, 'utf8'));
