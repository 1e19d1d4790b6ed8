import type { PaymentRequirements } from '@x402/core/types';
import { hexToBytes } from '../../../lib/hex.ts';
import { recoverAddress } from '../../../lib/secp256k1.ts';
import type { Authorization } from '../../authorization.ts';
import { domainSeparator } from '../../evm/eip712.ts';
import {
  authorizationDigest,
  checkAuthorization,
  MOST_VALIDITY_SECONDS,
  type ServingTimes,
} from '../../evm/eip3009.ts';
import { GATEWAY_DOMAIN } from '../../evm/gateway-domain.ts';
import { PaymentRefused } from '../../refusal.ts';

/** The Gateway takes an authorization only while it is valid for this many seconds more: its `/supported` says so. */
const MIN_VALIDITY_SECONDS = 604_800;
/**
 * Seconds added to the handler's time, for the steps before the authorization is handed over. Clients sign for 100 seconds more than the Gateway
 * requires.
 */
const HANDING_OVER_SECONDS = 5;

/** Makes the plain rail's cheap checks and two of the Gateway's own. Throws PaymentRefused with the reason of the first check that fails. */
export function createGatewayCheck({ handlerTimeoutMs }: Pick<ServingTimes, 'handlerTimeoutMs'>) {
  const least = MIN_VALIDITY_SECONDS + Math.ceil(handlerTimeoutMs / 1000) + HANDING_OVER_SECONDS;
  // `now` in Unix seconds.
  return (authorization: Authorization, requirement: PaymentRequirements, now: number): void => {
    checkAuthorization(authorization, requirement, now, { least: 0, most: MOST_VALIDITY_SECONDS });
    // 5. After the call is served, it is still valid for as long as the Gateway requires.
    if (authorization.validBefore < BigInt(now + least)) throw new PaymentRefused('authorization_validity_too_short');
    // 6. The payer does not pay itself.
    if (Buffer.compare(authorization.from, authorization.to) === 0) throw new PaymentRefused('self_transfer');
  };
}

/** Checks that the payer signed for the Gateway Wallet. Only a key can sign: the Gateway asks no contracts (ERC-1271). */
export function createGatewaySignatureCheck(chainId: number, wallet: `0x${string}`) {
  const separator = domainSeparator(GATEWAY_DOMAIN.name, GATEWAY_DOMAIN.version, chainId, hexToBytes(wallet));
  return async (authorization: Authorization): Promise<void> => {
    const signer = recoverAddress(authorizationDigest(authorization, separator), authorization.signature);
    if (signer && Buffer.compare(signer, authorization.from) === 0) return;
    throw new PaymentRefused('invalid_exact_evm_signature');
  };
}
