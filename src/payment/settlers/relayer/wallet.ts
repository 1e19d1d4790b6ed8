import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import { rlpBytes, rlpInteger, rlpList } from '../../../lib/rlp.ts';
import { addressOf, keccak256, signDigest } from '../../../lib/secp256k1.ts';

/** The fields of a transaction of the relayer. Fees are in wei per unit of gas. */
export interface Call {
  readonly to: `0x${string}`;
  readonly data: `0x${string}`;
  readonly gas: bigint;
  readonly nonce: number;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A transaction that is ready to send. Its hash is known before it is sent. */
export interface Signed {
  readonly raw: `0x${string}`;
  readonly hash: `0x${string}`;
}

/** EIP-2718's type number of an EIP-1559 transaction. It precedes the fields. */
const TYPE = Buffer.from([2]);

/**
 * The key that pays the gas. It signs with the native library and encodes transactions byte by byte. In JavaScript, a signature blocks the event loop
 * for milliseconds, and so does a library's encoding of a transaction that settles hundreds of payments.
 */
export function createWallet(privateKey: `0x${string}`, chainId: number) {
  const key = hexToBytes(privateKey);
  const address = addressOf(key);

  function sign({ to, data, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }: Call): Signed {
    const fields = [
      ...[chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(rlpInteger),
      rlpBytes(hexToBytes(to)),
      // No value, and an empty access list after the data.
      rlpInteger(0),
      rlpBytes(hexToBytes(data)),
      rlpList([]),
    ];
    const digest = keccak256(Buffer.concat([TYPE, rlpList(fields)]));
    const { signature, recovery } = signDigest(digest, key);
    const halves = [signature.subarray(0, 32), signature.subarray(32)].map((half) => BigInt(bytesToHex(half)));
    const raw = Buffer.concat([TYPE, rlpList([...fields, ...[recovery, ...halves].map(rlpInteger)])]);
    return { raw: bytesToHex(raw), hash: bytesToHex(keccak256(raw)) };
  }

  return { address, sign };
}

export type Wallet = ReturnType<typeof createWallet>;
