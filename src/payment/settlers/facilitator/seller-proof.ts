import { randomBytes } from 'node:crypto';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import { addressOf, keccak256, signDigest } from '../../../lib/secp256k1.ts';

interface SellerProofOptions {
  readonly key: `0x${string}`;
  readonly network: `eip155:${number}`;
  readonly clock: Clock;
}

/** Circle accepts proofs that are valid for at most 300 seconds. The rest allows for differing clocks. */
const LIFE_SECONDS = 240;

const utf8 = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const hashOf = (text: string): Uint8Array => keccak256(utf8(text));
const number = (value: number): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
const joined = (...parts: Uint8Array[]): Uint8Array => keccak256(Buffer.concat(parts));

const DOMAIN_TYPE = hashOf('EIP712Domain(string name,string version,uint256 chainId)');
const REQUEST_TYPE = hashOf(
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
  const domain = joined(DOMAIN_TYPE, hashOf('Circle Facilitator Seller Request'), hashOf('1'), number(chainId));

  return {
    payTo,
    /** `purpose` is the operation. `body` is the body that is sent, empty for GET. */
    header: (purpose: string, method: 'GET' | 'POST', body: string): string => {
      const issuedAt = nowSeconds(clock);
      const expiresAt = issuedAt + LIFE_SECONDS;
      const nonce = randomBytes(32);
      const struct = joined(
        REQUEST_TYPE,
        hashOf(purpose),
        hashOf(method),
        hashOf(body),
        hashOf(network),
        Buffer.concat([Buffer.alloc(12), hexToBytes(payTo)]),
        nonce,
        number(issuedAt),
        number(expiresAt),
      );
      const digest = joined(Buffer.from([0x19, 0x01]), domain, struct);
      const { signature, recovery } = signDigest(digest, privateKey);
      const signed = bytesToHex(Buffer.concat([signature, Buffer.from([27 + recovery])]));
      const proof = { version: 1, signature: signed, network, payTo, nonce: bytesToHex(nonce), issuedAt, expiresAt };
      return Buffer.from(JSON.stringify(proof), 'utf8').toString('base64url');
    },
  };
}

export type SellerProof = ReturnType<typeof createSellerProof>;
