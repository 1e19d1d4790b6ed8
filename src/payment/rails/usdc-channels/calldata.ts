import { decodeFunctionData, encodeAbiParameters, encodeFunctionData, parseAbi, parseAbiParameters } from 'viem/utils';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { ChannelConfig } from '../../../store/ports/channel-state.ts';

/** The functions of the settlement contract that we call (facts of the scheme). */
const abi = parseAbi([
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }',
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
  'function claimWithSignature(VoucherClaim[] claims, bytes signature)',
  'function settle(address receiver, address token)',
  'function refundWithSignature(ChannelConfig config, uint128 amount, uint256 nonce, bytes signature)',
  'function multicall(bytes[] data) returns (bytes[])',
  'function getChannelId(ChannelConfig config) view returns (bytes32)',
]);

const COLLECTOR_DATA = parseAbiParameters('uint256 validAfter, uint256 validBefore, uint256 salt, bytes signature');

/** One row of a claim: the voucher, and how much of it is recorded. Amounts in base units of the token. */
export interface ClaimRow {
  readonly config: ChannelConfig;
  /** What the payer signed for in all, and its signature. */
  readonly maxClaimableAmount: bigint;
  readonly signature: Uint8Array;
  /** What is recorded in all once the claim is mined. */
  readonly totalClaimed: bigint;
}

/** What the deposit collector takes: the depositor's authorization without its amount. Times in Unix seconds. */
export interface DepositAuthorization {
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly salt: bigint;
  readonly signature: Uint8Array;
}

/** Calldata that moves `amount` from the channel's payer into the channel. Anyone may send it. */
export function depositCalldata(
  config: ChannelConfig,
  amount: bigint,
  collector: `0x${string}`,
  { validAfter, validBefore, salt, signature }: DepositAuthorization,
): Uint8Array {
  const data = encodeAbiParameters(COLLECTOR_DATA, [validAfter, validBefore, salt, bytesToHex(signature)]);
  return hexToBytes(
    encodeFunctionData({ abi, functionName: 'deposit', args: [structOf(config), amount, collector, data] }),
  );
}

/** Calldata that records what these vouchers may claim. `signature`: the receiver's authorizer over the rows, in their order. Anyone may send it. */
export function claimCalldata(rows: readonly ClaimRow[], signature: Uint8Array): Uint8Array {
  const claims = rows.map((row) => ({
    voucher: { channel: structOf(row.config), maxClaimableAmount: row.maxClaimableAmount },
    signature: bytesToHex(row.signature),
    totalClaimed: row.totalClaimed,
  }));
  return hexToBytes(
    encodeFunctionData({ abi, functionName: 'claimWithSignature', args: [claims, bytesToHex(signature)] }),
  );
}

/** Calldata that pays everything recorded for the receiver out to it. Anyone may send it. */
export function settleCalldata(receiver: Uint8Array, token: Uint8Array): Uint8Array {
  return hexToBytes(
    encodeFunctionData({ abi, functionName: 'settle', args: [bytesToHex(receiver), bytesToHex(token)] }),
  );
}

/** Calldata that returns `amount`, or what is left where that is less, to the channel's payer. `nonce`: the channel's `refundNonce`. */
export function refundCalldata(
  config: ChannelConfig,
  amount: bigint,
  nonce: bigint,
  signature: Uint8Array,
): Uint8Array {
  const args = [structOf(config), amount, nonce, bytesToHex(signature)] as const;
  return hexToBytes(encodeFunctionData({ abi, functionName: 'refundWithSignature', args }));
}

/** Calldata that makes several calls of the contract in one. All of them succeed, or none. */
export function multicallCalldata(calls: readonly Uint8Array[]): Uint8Array {
  return hexToBytes(encodeFunctionData({ abi, functionName: 'multicall', args: [calls.map(bytesToHex)] }));
}

/** The calldata of several calls with one more at the end. */
export function withCall(calldata: Uint8Array, more: Uint8Array): Uint8Array {
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(calldata) });
  const calls = functionName === 'multicall' ? args[0].map((call) => hexToBytes(call)) : [calldata];
  return multicallCalldata([...calls, more]);
}

/** Calldata that asks for a channel's id. */
export function channelIdCalldata(config: ChannelConfig): `0x${string}` {
  return encodeFunctionData({ abi, functionName: 'getChannelId', args: [structOf(config)] });
}

/** Returns the rows of a claim's calldata, whether or not other calls are made with it. Empty for calldata without a claim. */
export function claimedRows(calldata: Uint8Array): Pick<ClaimRow, 'config' | 'totalClaimed'>[] {
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(calldata) });
  if (functionName === 'multicall') return args[0].flatMap((call) => claimedRows(hexToBytes(call)));
  if (functionName !== 'claimWithSignature') return [];
  return args[0].map(({ voucher, totalClaimed }) => ({ config: configOf(voucher.channel), totalClaimed }));
}

/** Returns the nonce that a refund's calldata holds, whether or not other calls are made with it. Null for calldata without a refund. */
export function refundNonceOf(calldata: Uint8Array): bigint | null {
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(calldata) });
  if (functionName === 'refundWithSignature') return args[2];
  if (functionName !== 'multicall') return null;
  return args[0].map((call) => refundNonceOf(hexToBytes(call))).find((nonce) => nonce !== null) ?? null;
}

function configOf({ withdrawDelay, ...texts }: ReturnType<typeof structOf>): ChannelConfig {
  return {
    payer: hexToBytes(texts.payer),
    payerAuthorizer: hexToBytes(texts.payerAuthorizer),
    receiver: hexToBytes(texts.receiver),
    receiverAuthorizer: hexToBytes(texts.receiverAuthorizer),
    token: hexToBytes(texts.token),
    withdrawDelay,
    salt: hexToBytes(texts.salt),
  };
}

function structOf(config: ChannelConfig) {
  return {
    payer: bytesToHex(config.payer),
    payerAuthorizer: bytesToHex(config.payerAuthorizer),
    receiver: bytesToHex(config.receiver),
    receiverAuthorizer: bytesToHex(config.receiverAuthorizer),
    token: bytesToHex(config.token),
    withdrawDelay: config.withdrawDelay,
    salt: bytesToHex(config.salt),
  };
}
