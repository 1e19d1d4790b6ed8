import { encodeFunctionData, parseAbi } from 'viem';
import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { batchCalldata } from '../../../../../src/payment/relayer/transactions.ts';
import type { Authorization } from '../../../../../src/payment/settler.ts';
import { settleCall } from '../../../../../src/payment/usdc/checks.ts';
import {
  authorizationStateCalldata,
  balanceOfCalldata,
  isValidSignatureCalldata,
  MULTICALL3,
  transferCalldata,
  zeroTransferCalldata,
} from '../../../../../src/payment/usdc/token.ts';
import { seed, seededRandom } from '../../../../support/random.ts';
import { USDC } from '../../../../support/usdc/payments.ts';

// viem encodes the same by the declarations: what is written word by word must be the same bytes.
const token = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);
const multicall = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call3[] calldata calls) payable',
]);

const random = seededRandom('calldata');
const bytes = (length: number) => Uint8Array.from({ length }, () => random() * 256);
const MAX = 2n ** 256n - 1n;
const numbers = [0n, 1n, 500n, 2n ** 64n, MAX];
const number = () => numbers[Math.floor(random() * numbers.length)] ?? 0n;

function authorization(signature: Uint8Array): Authorization {
  const terms = { value: number(), validAfter: number(), validBefore: number() };
  return { from: bytes(20), to: bytes(20), ...terms, nonce: bytes(32), signature };
}

function byViem({ from, to, value, validAfter, validBefore, nonce, signature }: Authorization): `0x${string}` {
  const functionName = 'transferWithAuthorization';
  const terms = [bytesToHex(from), bytesToHex(to), value, validAfter, validBefore, bytesToHex(nonce)] as const;
  if (signature.length !== 65)
    return encodeFunctionData({ abi: token, functionName, args: [...terms, bytesToHex(signature)] });
  const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32, 64))];
  return encodeFunctionData({ abi: token, functionName, args: [...terms, signature[64] ?? 0, r, s] });
}

function batchByViem(authorizations: readonly Authorization[]): `0x${string}` {
  const calls = authorizations.map((one) => ({ target: USDC, allowFailure: true, callData: byViem(one) }) as const);
  return encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args: [calls] });
}

test('a transfer is encoded as by its declaration, with every kind of signature and number', () => {
  for (const length of [65, 65, 65, 1, 31, 32, 33, 64, 66, 96, 600, 4096]) {
    const one = authorization(bytes(length));
    expect(transferCalldata(one), `seed ${seed}, ${length} bytes`).toBe(byViem(one));
  }
});

test('a batch is encoded as by its declaration, whatever the lengths of its parts', () => {
  for (const lengths of [[], [65], [65, 65, 65], [65, 96, 1, 65, 4096], Array.from({ length: 60 }, () => 65)]) {
    const some = lengths.map((length) => authorization(bytes(length)));
    expect(
      batchCalldata(some.map((authorization) => settleCall(USDC, { authorization, call: null }))),
      `seed ${seed}, ${lengths}`,
    ).toBe(batchByViem(some));
  }
  expect(MULTICALL3).toMatch(/^0x[0-9a-f]{40}$/);
});

test('calls of a token and of a wallet are encoded by the functions’ own selectors and arguments', () => {
  const [account, nonce, digest, signature] = [bytes(20), bytes(32), bytes(32), bytes(70)];
  const word = (value: Uint8Array) => bytesToHex(value).slice(2).padStart(64, '0');
  expect(balanceOfCalldata(account)).toBe(`0x70a08231${word(account)}`);
  expect(zeroTransferCalldata(account)).toBe(`0xa9059cbb${word(account)}${'0'.repeat(64)}`);
  expect(authorizationStateCalldata(account, nonce)).toBe(`0xe94a0102${word(account)}${word(nonce)}`);
  const erc1271 = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
  expect(isValidSignatureCalldata(digest, signature)).toBe(
    encodeFunctionData({ abi: erc1271, args: [bytesToHex(digest), bytesToHex(signature)] }),
  );
  expect(isValidSignatureCalldata(digest, signature)).toMatch(/^0x1626ba7e/);
});

test('a batch of payments to several contracts is encoded as by its declaration', () => {
  const call = { to: bytes(20), data: bytes(612) };
  const plain = authorization(bytes(65));
  const calls = [
    { target: bytesToHex(call.to), allowFailure: true, callData: bytesToHex(call.data) },
    { target: USDC, allowFailure: true, callData: byViem(plain) },
  ];
  const payments = [
    { authorization: plain, call },
    { authorization: plain, call: null },
  ];
  expect(batchCalldata(payments.map((payment) => settleCall(USDC, payment)))).toBe(
    encodeFunctionData({ abi: multicall, functionName: 'aggregate3', args: [calls] }),
  );
});
