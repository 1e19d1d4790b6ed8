import { recoverAddress } from '../../lib/secp256k1.ts';
import { PaymentRefused } from '../refusal.ts';
import { type Authorization, authorizationDigest } from './authorization.ts';
import type { ChainCheck } from './chain-check.ts';

/** Checks that the payer signed: by native recovery, or, for anything that recovery does not tell, by the payer's own contract (ERC-1271). */
export function createSignatureCheck(check: ChainCheck, separator: Uint8Array) {
  return async (authorization: Authorization, signal: AbortSignal): Promise<void> => {
    const digest = authorizationDigest(authorization, separator);
    const signer = recoverAddress(digest, authorization.signature);
    if (signer && Buffer.compare(signer, authorization.from) === 0) return;
    if (await check.contractSigned(authorization, digest, signal)) return;
    throw new PaymentRefused('invalid_exact_evm_signature');
  };
}
