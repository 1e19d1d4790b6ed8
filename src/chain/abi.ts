/** Function selectors of ERC-20, ERC-165 and EIP-3009: the first four bytes of keccak-256 of the signature (checked by a test). */
export const SELECTORS = {
  'name()': '0x06fdde03',
  'symbol()': '0x95d89b41',
  'decimals()': '0x313ce567',
  'totalSupply()': '0x18160ddd',
  'balanceOf(address)': '0x70a08231',
  'supportsInterface(bytes4)': '0x01ffc9a7',
  'transfer(address,uint256)': '0xa9059cbb',
  'transferFrom(address,address,uint256)': '0x23b872dd',
  'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)': '0xe3ee160e',
  'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)': '0xcf092995',
  'receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)': '0xef55bec6',
  'receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)': '0x88b7ab63',
} as const;

/** Topic of `Transfer(address,address,uint256)`, which ERC-20, ERC-721 and Arc's system log share. */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** Longest name or symbol that is passed on. A third party's contract chooses these strings. */
const MAX_TEXT = 64;
const WORD = 32;

/** An unsigned integer returned by a contract. Null when the contract returned less than one 32-byte word, or no hex. */
export function decodeUint(returned: string): bigint | null {
  return /^0x[0-9a-fA-F]{64}/.test(returned) ? BigInt(returned.slice(0, 66)) : null;
}

/**
 * A name or symbol returned by a contract: ABI `string`, or the `bytes32` of tokens older than ERC-20's final form.
 * Null when it is neither, is no UTF-8, or has nothing printable.
 */
export function decodeText(returned: string): string | null {
  const bytes = Buffer.from(returned.slice(2), 'hex');
  if (bytes.length === WORD) return printable(bytes.subarray(0, bytes.indexOf(0) === -1 ? WORD : bytes.indexOf(0)));
  const offset = readLength(bytes, 0);
  const length = offset === null ? null : readLength(bytes, offset);
  if (offset === null || length === null || offset + WORD + length > bytes.length) return null;
  return printable(bytes.subarray(offset + WORD, offset + WORD + length));
}

/** A 32-byte word read as an offset or a length. Null when it is beyond the end of the bytes. */
function readLength(bytes: Buffer, at: number): number | null {
  if (at + WORD > bytes.length) return null;
  const value = BigInt(`0x${bytes.toString('hex', at, at + WORD)}`);
  return value <= BigInt(bytes.length) ? Number(value) : null;
}

function printable(bytes: Uint8Array): string | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
  // Control and invisible formatting characters (direction overrides too) could disguise one token as another.
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '').trim();
  return visible === '' ? null : Array.from(visible).slice(0, MAX_TEXT).join('');
}
