import { randomBytes } from 'node:crypto';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

/** An account of the embedded network. */
export interface Account {
  readonly address: Hex;
  readonly privateKey: Hex;
}

/**
 * A fresh random account. Well-known test keys are not used, because bots empty their accounts within seconds, and Arc blocks one of them from genesis.
 */
export function createAccount(): Account {
  const privateKey: Hex = `0x${randomBytes(32).toString('hex')}`;
  return { address: privateKeyToAccount(privateKey).address, privateKey };
}
