import { type Account, fromHex, type Hex, keccak, recover, signDigest, toHex } from './keys.ts';

/** An EIP-1559 transaction, as its bytes say. */
export interface Transaction {
  readonly hash: Hex;
  readonly raw: Hex;
  readonly from: Hex;
  readonly nonce: number;
  readonly tip: bigint;
  readonly maxFee: bigint;
  readonly gas: number;
  readonly to: Hex;
  readonly value: bigint;
  readonly data: Hex;
}

type Rlp = Buffer | Rlp[];

function readRlp(bytes: Buffer, at: number): { item: Rlp; next: number } {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return { item: bytes.subarray(at, at + 1), next: at + 1 };
  const isList = first >= 0xc0;
  const base = isList ? 0xc0 : 0x80;
  const long = first > base + 55;
  const sizeBytes = long ? first - base - 55 : 0;
  const size = long ? Number(`0x${bytes.subarray(at + 1, at + 1 + sizeBytes).toString('hex')}`) : first - base;
  const from = at + 1 + sizeBytes;
  const end = from + size;
  if (end > bytes.length) throw new RangeError('RLP that is cut short');
  if (!isList) return { item: bytes.subarray(from, end), next: end };
  const items: Rlp[] = [];
  for (let next = from; next < end; ) {
    const read = readRlp(bytes, next);
    items.push(read.item);
    next = read.next;
  }
  return { item: items, next: end };
}

function lengthPrefix(size: number, base: number): Buffer {
  if (size <= 55) return Buffer.from([base + size]);
  const digits = size.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  return Buffer.concat([Buffer.from([base + 55 + bytes.length]), bytes]);
}

function writeRlp(item: Rlp): Buffer {
  if (Array.isArray(item)) {
    const body = Buffer.concat(item.map(writeRlp));
    return Buffer.concat([lengthPrefix(body.length, 0xc0), body]);
  }
  return item.length === 1 && (item[0] ?? 0) < 0x80 ? item : Buffer.concat([lengthPrefix(item.length, 0x80), item]);
}

const integer = (bytes: Rlp | undefined): bigint => BigInt(`0x${(bytes as Buffer).toString('hex') || '0'}`);
const bytesOf = (value: bigint | number): Buffer => {
  const digits = BigInt(value).toString(16);
  return value === 0 || value === 0n
    ? Buffer.alloc(0)
    : Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
};

/** Reads a raw transaction and recovers its sender; null for anything that no node would take. */
export function readTransaction(raw: Hex, chainId: number): Transaction | null {
  try {
    const bytes = fromHex(raw);
    if (bytes[0] !== 2) return null;
    const fields = readRlp(bytes, 1).item as Rlp[];
    const [chain, nonce, tip, maxFee, gas, to, value, data, , yParity, r, s] = fields;
    if (integer(chain) !== BigInt(chainId)) return null;
    const digest = keccak(Buffer.concat([Buffer.from([2]), writeRlp(fields.slice(0, 9))]));
    const compact = Buffer.from([r, s].map((part) => integer(part).toString(16).padStart(64, '0')).join(''), 'hex');
    const from = recover(digest, compact, Number(integer(yParity)));
    if (from === null) return null;
    return {
      hash: toHex(keccak(bytes)),
      raw,
      from,
      nonce: Number(integer(nonce)),
      tip: integer(tip),
      maxFee: integer(maxFee),
      gas: Number(integer(gas)),
      to: toHex(to as Buffer),
      value: integer(value),
      data: toHex(data as Buffer),
    };
  } catch {
    return null;
  }
}

/** Signs a transaction of one of the world's own accounts. */
export function signTransaction(
  account: Account,
  chainId: number,
  call: Omit<Transaction, 'hash' | 'raw' | 'from'>,
): Hex {
  const numbers = [chainId, call.nonce, call.tip, call.maxFee, call.gas].map(bytesOf);
  const fields: Rlp[] = [...numbers, fromHex(call.to), bytesOf(call.value), fromHex(call.data), []];
  const digest = keccak(Buffer.concat([Buffer.from([2]), writeRlp(fields)]));
  const signature = signDigest(digest, account);
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32, 64)].map((part) => bytesOf(BigInt(toHex(part))));
  return toHex(
    Buffer.concat([
      Buffer.from([2]),
      writeRlp([...fields, bytesOf((signature[64] ?? 27) - 27), r as Buffer, s as Buffer]),
    ]),
  );
}
