import { randomBytes } from 'node:crypto';
import { privateKeyToAccount } from 'viem/accounts';
import { type Clock, nowSeconds } from '../../lib/clock.ts';
import { USDC_DOMAIN } from './token.ts';

/** Seconds: a payment's validity, and by how much it starts in the past, because the chain's clock may be behind. */
const VALID_SECONDS = 600;

const TYPES = {
  TransferWithAuthorization: [
    ...['from', 'to'].map((name) => ({ name, type: 'address' })),
    ...['value', 'validAfter', 'validBefore'].map((name) => ({ name, type: 'uint256' })),
    { name: 'nonce', type: 'bytes32' },
  ],
};

/** Signs EIP-3009 transfers of one account, each with a fresh nonce. A buyer's part, that we have for play money. */
export function createTransferSigner(clock: Clock, privateKey: `0x${string}`, chainId: number, usdc: `0x${string}`) {
  const account = privateKeyToAccount(privateKey);
  const domain = { ...USDC_DOMAIN, chainId, verifyingContract: usdc };
  /** `value` is in base units. */
  return async (to: string, value: string) => {
    const now = nowSeconds(clock);
    const authorization = {
      from: account.address,
      to,
      value,
      nonce: `0x${randomBytes(32).toString('hex')}`,
      validAfter: String(now - VALID_SECONDS),
      validBefore: String(now + VALID_SECONDS),
    };
    const typed = { domain, types: TYPES, primaryType: 'TransferWithAuthorization', message: authorization } as const;
    return { signature: await account.signTypedData(typed), authorization };
  };
}
