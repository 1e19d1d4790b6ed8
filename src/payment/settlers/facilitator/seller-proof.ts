import { randomBytes } from 'node:crypto';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import { addressOf, keccak256, signRecoverable } from '../../../lib/secp256k1.ts';
import { addressWord, offChainSeparator, stringWord, typedDigest, typeHash, word } from '../../evm/eip712.ts';

interface SellerProofOptions {
  readonly key: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly clock: Clock;
}

/** Circle accepts proofs that are valid for at most 300 seconds. The rest allows for differing clocks. */
const LIFE_SECONDS = 240;

const REQUEST_TYPEHASH = typeHash(
  'SellerRequest(string purpose,string method,bytes32 bodyHash,string network,address payTo,bytes32 nonce,uint256 issuedAt,uint256 expiresAt)',
);

/**
 * Makes the header that authenticates a seller without an API key to Circle's Facilitator Service. It is the seller's EIP-712 signature over the
 * body's hash, valid for LIFE_SECONDS. Circle's documentation names only the members of the struct. So the member types, the purpose and the hash
 * (keccak-256) follow EIP-712's conventions.
 */
export function createSellerProof({ key, network, clock }: SellerProofOptions) {
  const privateKey = hexToBytes(key);
  const payTo = addressOf(privateKey);
  const chainId = Number(network.split(':')[1]);
  const separator = offChainSeparator('Circle Facilitator Seller Request', '1', chainId);

  return {
    payTo,
    /** `purpose` is the operation. `body` is the body that is sent, empty for GET. */
    header: (purpose: string, method: 'GET' | 'POST', body: string): string => {
      const issuedAt = nowSeconds(clock);
      const expiresAt = issuedAt + LIFE_SECONDS;
      const nonce = randomBytes(32);
      const digest = typedDigest(separator, [
        REQUEST_TYPEHASH,
        ...[stringWord(purpose), stringWord(method), keccak256(Buffer.from(body, 'utf8')), stringWord(network)],
        ...[addressWord(hexToBytes(payTo)), nonce, word(BigInt(issuedAt)), word(BigInt(expiresAt))],
      ]);
      const signature = bytesToHex(signRecoverable(digest, privateKey));
      const proof = { version: 1, signature, network, payTo, nonce: bytesToHex(nonce), issuedAt, expiresAt };
      return Buffer.from(JSON.stringify(proof), 'utf8').toString('base64url');
    },
  };
}

export type SellerProof = ReturnType<typeof createSellerProof>;
