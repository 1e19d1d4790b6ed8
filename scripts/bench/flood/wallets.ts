import { randomBytes } from 'node:crypto';
import { encodeAbiParameters, type Hex, keccak256, pad, toHex } from 'viem';
import { USDC } from '../../../dev/contracts.ts';
import type { Rpc } from '../../../dev/miner.ts';

/** The addresses of the flood's wallets begin with this: a transaction shows which of them it pays from. */
const MARK = 'f100df100df100df';
const MARKED = new RegExp(`${MARK}[0-9a-f]{${40 - MARK.length}}`, 'g');
/** Answers every question for a signature (ERC-1271) with yes. */
const AGREES = '0x631626ba7e60e01b5f5260205ff3';
/** Answers nothing, which is no. */
const SILENT = '0x00';
/** Where the embedded USDC keeps balances. */
const BALANCES_SLOT = 0n;
const AT_ONCE = 25;

/** Makes contract payers that agree to everything and hold this much USDC; returns their addresses. */
export async function createWallets(rpc: Rpc, count: number, units: bigint): Promise<Hex[]> {
  const addresses = Array.from({ length: count }, (): Hex => `0x${MARK}${randomBytes(12).toString('hex')}`);
  for (let at = 0; at < count; at += AT_ONCE) {
    await Promise.all(addresses.slice(at, at + AT_ONCE).map((address) => furnish(rpc, address, units)));
  }
  return addresses;
}

async function furnish(rpc: Rpc, address: Hex, units: bigint): Promise<void> {
  const slot = keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [address, BALANCES_SLOT]));
  await rpc('anvil_setStorageAt', [USDC, slot, pad(toHex(units))]);
  await rpc('anvil_setCode', [address, AGREES]);
}

/**
 * Makes every flood wallet that a raw transaction pays from change its mind, as one does whose owner is faster than the seller: it passed every
 * check before, and fails in the block.
 */
export async function flipWallets(rpc: Rpc, raw: string): Promise<void> {
  const wallets = new Set(raw.match(MARKED));
  await Promise.all([...wallets].map((wallet) => rpc('anvil_setCode', [`0x${wallet}`, SILENT])));
}
