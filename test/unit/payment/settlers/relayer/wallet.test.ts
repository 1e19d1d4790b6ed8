import { serializeTransaction } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { keccak256 } from '../../../../../src/lib/secp256k1.ts';
import { createWallet } from '../../../../../src/payment/relayer/transactions.ts';
import { seed, seededRandom } from '../../../../support/random.ts';

const random = seededRandom('wallet');
const bytes = (length: number) => Uint8Array.from({ length }, () => random() * 256);
const hex = (length: number) => bytesToHex(bytes(length));

test('a transaction is byte for byte what viem signs with the same key, in every size', async () => {
  // The lengths at which RLP writes its prefixes differently.
  for (const length of [0, 1, 2, 55, 56, 57, 255, 256, 65_535, 65_536]) {
    const key = hex(32);
    const account = privateKeyToAccount(key);
    const call = {
      to: hex(20),
      data: hex(length),
      gas: BigInt(Math.floor(random() * 2 ** 24)),
      nonce: Math.floor(random() * 300),
      maxFeePerGas: BigInt(Math.floor(random() * 2 ** 50)),
      maxPriorityFeePerGas: 100_000_000n,
    };
    const { raw, hash } = createWallet(key, 5042).sign(call);
    const theirs = await account.signTransaction({ type: 'eip1559', chainId: 5042, ...call });
    expect(raw === theirs, `seed ${seed}, ${length} bytes`).toBe(true);
    expect(hash).toBe(bytesToHex(keccak256(Buffer.from(raw.slice(2), 'hex'))));
  }
});

test('zero and one small byte are encoded as RLP requires', async () => {
  const key = hex(32);
  for (const [nonce, data] of [
    [0, '0x00'],
    [1, '0x7f'],
    [127, '0x80'],
    [128, '0x'],
  ] as const) {
    const call = { to: hex(20), data, gas: 21_000n, nonce, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n };
    const { raw } = createWallet(key, 5042).sign(call);
    expect(raw).toBe(await privateKeyToAccount(key).signTransaction({ type: 'eip1559', chainId: 5042, ...call }));
    // Without the signature it would be another transaction: nothing of it was left out.
    expect(raw.length).toBeGreaterThan(serializeTransaction({ type: 'eip1559', chainId: 5042, ...call }).length);
  }
});

test('a signature that begins with a zero byte is encoded as a shorter number', async () => {
  const key = hex(32);
  const call = {
    to: hex(20),
    data: '0x',
    gas: 21_000n,
    nonce: 0,
    maxFeePerGas: 256n,
    maxPriorityFeePerGas: 1n,
  } as const;
  const wallet = createWallet(key, 5042);
  const calls = Array.from({ length: 5000 }, (_, at) => ({ ...call, maxFeePerGas: BigInt(at + 256) }));
  // One in 128 is, the first as well: the seed decides which, and 5,000 without one do not happen.
  const lengths = calls.map((other) => wallet.sign(other).raw.length);
  const shorter = calls[lengths.findIndex((length) => length < Math.max(...lengths))];
  expect(shorter, `seed ${seed}`).toBeDefined();
  if (!shorter) return;
  const theirs = await privateKeyToAccount(key).signTransaction({ type: 'eip1559', chainId: 5042, ...shorter });
  expect(wallet.sign(shorter).raw, `seed ${seed}`).toBe(theirs);
});

test('the wallet’s address is the address of its key', () => {
  const key = hex(32);
  expect(createWallet(key, 5042).address).toBe(privateKeyToAccount(key).address.toLowerCase());
});
