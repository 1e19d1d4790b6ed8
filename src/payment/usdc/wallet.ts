import { serializeTransaction } from 'viem';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { addressOf, keccak256, signDigest } from '../../lib/secp256k1.ts';

/** What a transaction of the relayer's needs; fees in wei for each gas. */
export interface Call {
  readonly to: `0x${string}`;
  readonly data: `0x${string}`;
  readonly gas: bigint;
  readonly nonce: number;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A transaction ready to send: its hash is known before it is on its way. */
export interface Signed {
  readonly raw: `0x${string}`;
  readonly hash: `0x${string}`;
}

/** The key that pays the gas. It signs natively: in JavaScript a signature blocks the loop for milliseconds. */
export function createWallet(privateKey: `0x${string}`, chainId: number) {
  const key = hexToBytes(privateKey);
  const address = addressOf(key);

  function sign(call: Call): Signed {
    const transaction = { type: 'eip1559', chainId, ...call } as const;
    const digest = keccak256(hexToBytes(serializeTransaction(transaction)));
    const { signature, recovery } = signDigest(digest, key);
    const raw = serializeTransaction(transaction, {
      r: bytesToHex(signature.subarray(0, 32)),
      s: bytesToHex(signature.subarray(32, 64)),
      yParity: recovery,
    });
    return { raw, hash: bytesToHex(keccak256(hexToBytes(raw))) };
  }

  return { address, sign };
}

export type Wallet = ReturnType<typeof createWallet>;
