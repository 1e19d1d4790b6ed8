import { hexToBytes } from '../../../src/lib/hex.ts';
import { signRecoverable } from '../../../src/lib/secp256k1.ts';
import type { Authorization } from '../../../src/payment/settler.ts';
import { authorizationDigest } from '../../../src/payment/usdc/authorization.ts';
import { domainSeparator } from '../../../src/payment/usdc/token.ts';
import { type Requirement, signAuthorization } from './payments.ts';

/** An authorization signed for the Gateway Wallet. A test compares it with the official client's. */
export function signForGateway(
  privateKey: Uint8Array,
  requirement: Requirement,
  wallet: `0x${string}`,
  overrides?: Parameters<typeof signAuthorization>[2],
): Authorization {
  const plain = signAuthorization(privateKey, requirement, overrides);
  const chainId = Number(requirement.network.split(':')[1]);
  const separator = domainSeparator('GatewayWalletBatched', '1', chainId, hexToBytes(wallet));
  return { ...plain, signature: signRecoverable(authorizationDigest(plain, separator), privateKey) };
}
