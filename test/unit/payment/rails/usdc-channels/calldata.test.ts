import { type Abi, decodeFunctionData, encodeAbiParameters, encodeFunctionData, pad } from 'viem';
import { expect, test } from 'vitest';
import { artifacts } from '../../../../../dev/contracts.ts';
import { bytesToHex, hexToBytes } from '../../../../../src/lib/hex.ts';
import {
  channelIdCalldata,
  claimCalldata,
  claimedRows,
  depositCalldata,
  multicallCalldata,
  refundCalldata,
  refundNonceOf,
  settleCalldata,
} from '../../../../../src/payment/channels/calldata.ts';
import { DEPOSIT_COLLECTOR } from '../../../../../src/payment/channels/scheme.ts';
import { seed, seededRandom } from '../../../../support/random.ts';

// viem encodes the same by the interface of the compiled contract.

const abi = artifacts.BatchSettlement.abi as Abi;
const random = seededRandom('channel calldata');
const bytes = (length: number) => Uint8Array.from({ length }, () => random() * 256);
const configOf = () => ({
  payer: bytes(20),
  payerAuthorizer: bytes(20),
  receiver: bytes(20),
  receiverAuthorizer: bytes(20),
  token: bytes(20),
  withdrawDelay: Math.floor(random() * 2_592_000),
  salt: bytes(32),
});
const textOf = (config: ReturnType<typeof configOf>) =>
  Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, typeof value === 'number' ? value : bytesToHex(value)]),
  );
const encode = (functionName: string, args: readonly unknown[]) => encodeFunctionData({ abi, functionName, args });

test(`a deposit is encoded as the contract declares it, with the collector’s data inside (seed ${seed})`, () => {
  const config = configOf();
  const authorization = { validAfter: 0n, validBefore: 1_800_000_000n, salt: 7n, signature: bytes(65) };
  const types = [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }];
  const data = encodeAbiParameters(types, [0n, 1_800_000_000n, 7n, bytesToHex(authorization.signature)]);
  const calldata = depositCalldata(config, 1_000_000n, DEPOSIT_COLLECTOR, authorization);
  expect(bytesToHex(calldata)).toBe(encode('deposit', [textOf(config), 1_000_000n, DEPOSIT_COLLECTOR, data]));
  // The length that the facts measured.
  expect(calldata.length).toBe(612);
});

test(`a claim of any number of rows is encoded as the contract declares it (seed ${seed})`, () => {
  for (const count of [0, 1, 2, 100]) {
    const rows = Array.from({ length: count }, () => ({
      config: configOf(),
      maxClaimableAmount: 2n ** 128n - 1n,
      signature: bytes(65),
      totalClaimed: 5n,
    }));
    const claims = rows.map(({ config, maxClaimableAmount, signature, totalClaimed }) => ({
      voucher: { channel: textOf(config), maxClaimableAmount },
      signature: bytesToHex(signature),
      totalClaimed,
    }));
    const signature = bytes(65);
    expect(bytesToHex(claimCalldata(rows, signature))).toBe(
      encode('claimWithSignature', [claims, bytesToHex(signature)]),
    );
  }
});

test(`a sweep and a refund are encoded as the contract declares them, alone and together (seed ${seed})`, () => {
  const [config, receiver, token, signature] = [configOf(), bytes(20), bytes(20), bytes(65)];
  const sweep = encode('settle', [bytesToHex(receiver), bytesToHex(token)]);
  const refund = encode('refundWithSignature', [textOf(config), 1234n, 2n ** 200n, bytesToHex(signature)]);
  const made = [settleCalldata(receiver, token), refundCalldata(config, 1234n, 2n ** 200n, signature)];
  expect(made.map(bytesToHex)).toEqual([sweep, refund]);
  expect(bytesToHex(multicallCalldata(made))).toBe(encode('multicall', [[sweep, refund]]));
  const { args } = decodeFunctionData({ abi, data: bytesToHex(multicallCalldata([hexToBytes(pad('0x01'))])) });
  expect(args).toEqual([[pad('0x01')]]);
});

test(`the nonce of a refund is read from its calldata, alone and beside a claim, and is absent elsewhere (seed ${seed})`, () => {
  const [config, signature] = [configOf(), bytes(65)];
  const row = { config, maxClaimableAmount: 9n, signature, totalClaimed: 5n };
  const claim = claimCalldata([row], signature);
  for (const nonce of [0n, 7n, 2n ** 256n - 1n]) {
    const refund = refundCalldata(config, 1234n, nonce, signature);
    expect(refundNonceOf(refund)).toBe(nonce);
    expect(refundNonceOf(multicallCalldata([claim, refund]))).toBe(nonce);
  }
  expect([refundNonceOf(claim), refundNonceOf(multicallCalldata([claim]))]).toEqual([null, null]);
});

test(`the rows of a claim are read from its calldata, alone and beside other calls, and are none elsewhere (seed ${seed})`, () => {
  const [signature, receiver, token] = [bytes(65), bytes(20), bytes(20)];
  const rows = [5n, 6n].map((totalClaimed) => ({
    config: configOf(),
    maxClaimableAmount: 9n,
    signature: bytes(65),
    totalClaimed,
  }));
  const wanted = rows.map(({ config, totalClaimed }) => ({ config: textOf(config), totalClaimed }));
  const read = (calldata: Uint8Array) =>
    claimedRows(calldata).map(({ config, totalClaimed }) => ({
      config: textOf(config as ReturnType<typeof configOf>),
      totalClaimed,
    }));
  const claim = claimCalldata(rows, signature);
  const sweep = settleCalldata(receiver, token);
  expect(read(claim)).toEqual(wanted);
  expect(read(multicallCalldata([claim, sweep]))).toEqual(wanted);
  expect([read(sweep), read(multicallCalldata([sweep]))]).toEqual([[], []]);
});

test(`the question for a channel’s id is encoded as the contract declares it (seed ${seed})`, () => {
  const config = configOf();
  expect(channelIdCalldata(config)).toBe(encode('getChannelId', [textOf(config)]));
});

test(`the nonce of a refund is found behind calls that hold none, and a sweep alone has none (seed ${seed})`, () => {
  const refund = refundCalldata(configOf(), 1n, 7n, bytes(65));
  const sweep = settleCalldata(bytes(20), bytes(20));
  expect(refundNonceOf(multicallCalldata([sweep, refund, sweep]))).toBe(7n);
  expect(refundNonceOf(sweep)).toBeNull();
});
