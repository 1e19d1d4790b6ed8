import type { Hex } from 'viem';
import {
  decodeEventLog,
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  parseAbi,
  parseAbiParameters,
} from 'viem/utils';
import { z } from 'zod';
import { MAX_LOG_SPAN } from '../../chain/block.ts';
import type { ChainClient } from '../../chain/rpc/client.ts';
import {
  index,
  type Rank,
  type ReadStatements,
  RpcError,
  type Statement,
  toQuantity,
  word,
} from '../../chain/rpc/wire.ts';
import { UpstreamFailed } from '../../errors.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import type { ChannelConfig } from '../../store/ports/channel-state.ts';
import type { MinedTransaction } from '../settler.ts';
import { SETTLEMENT } from './scheme.ts';

// The settlement contract's calldata, the events in its mined transactions, the logs that providers name up to a block,
// and ranges of blocks that are read once each and none left out.

/** The functions that we call (facts of the scheme). */
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

/** A row of a claim, in base units: `maxClaimableAmount` is signed for in all, `totalClaimed` recorded once mined. */
export interface ClaimRow {
  readonly config: ChannelConfig;
  readonly maxClaimableAmount: bigint;
  readonly signature: Uint8Array;
  readonly totalClaimed: bigint;
}

/** The depositor's authorization without its amount, for the deposit collector. Times in Unix seconds. */
interface DepositAuthorization {
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly salt: bigint;
  readonly signature: Uint8Array;
}

/** Moves `amount` from the channel's payer into the channel. Anyone may send it. */
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

/** Records these claims. `signature`: the receiver's authorizer over the rows in their order. Anyone may send it. */
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

/** Pays everything recorded for the receiver out to it. Anyone may send it. */
export function settleCalldata(receiver: Uint8Array, token: Uint8Array): Uint8Array {
  return hexToBytes(
    encodeFunctionData({ abi, functionName: 'settle', args: [bytesToHex(receiver), bytesToHex(token)] }),
  );
}

/** Returns `amount`, or what is left where that is less, to the payer. `nonce`: the channel's `refundNonce`. */
export function refundCalldata(
  config: ChannelConfig,
  amount: bigint,
  nonce: bigint,
  signature: Uint8Array,
): Uint8Array {
  const args = [structOf(config), amount, nonce, bytesToHex(signature)] as const;
  return hexToBytes(encodeFunctionData({ abi, functionName: 'refundWithSignature', args }));
}

/** Several calls in one. All of them succeed, or none. */
export function multicallCalldata(calls: readonly Uint8Array[]): Uint8Array {
  return hexToBytes(encodeFunctionData({ abi, functionName: 'multicall', args: [calls.map(bytesToHex)] }));
}

export function withCall(calldata: Uint8Array, more: Uint8Array): Uint8Array {
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(calldata) });
  const calls = functionName === 'multicall' ? args[0].map((call) => hexToBytes(call)) : [calldata];
  return multicallCalldata([...calls, more]);
}

export function channelIdCalldata(config: ChannelConfig): `0x${string}` {
  return encodeFunctionData({ abi, functionName: 'getChannelId', args: [structOf(config)] });
}

/** The rows of a claim, also among other calls. Empty without a claim. */
export function claimedRows(calldata: Uint8Array): Pick<ClaimRow, 'config' | 'totalClaimed'>[] {
  const { functionName, args } = decodeFunctionData({ abi, data: bytesToHex(calldata) });
  if (functionName === 'multicall') return args[0].flatMap((call) => claimedRows(hexToBytes(call)));
  if (functionName !== 'claimWithSignature') return [];
  return args[0].map(({ voucher, totalClaimed }) => ({ config: configOf(voucher.channel), totalClaimed }));
}

/** The nonce of a refund, also among other calls. Null without a refund. */
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

const eventsAbi = parseAbi([
  'event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed)',
  'event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount)',
  'event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount)',
]);

/** Amounts in base units of the token. Ids have 32 bytes, addresses 20. `Settled` is a sweep. */
type ChannelEvent =
  | { readonly kind: 'Claimed'; readonly channelId: Uint8Array; readonly amount: bigint; readonly totalClaimed: bigint }
  | { readonly kind: 'Settled'; readonly receiver: Uint8Array; readonly token: Uint8Array; readonly amount: bigint }
  | { readonly kind: 'Refunded'; readonly channelId: Uint8Array; readonly amount: bigint };

/** Claims, sweeps and refunds in order; none if it reverted. They name only an id, which the caller compares. */
export function channelEvents({ status, logs }: Pick<MinedTransaction, 'status' | 'logs'>): ChannelEvent[] {
  if (status !== '0x1') return [];
  return logs.flatMap((log) => {
    const event = log.address.toLowerCase() === SETTLEMENT ? eventOf(log) : null;
    return event ? [event] : [];
  });
}

/** Null for an event that we do not read, and for data that the contract does not log. */
function eventOf({ topics, data }: MinedTransaction['logs'][number]): ChannelEvent | null {
  const decoded = decode(topics as [Hex, ...Hex[]], data as Hex);
  switch (decoded?.eventName) {
    case 'Claimed': {
      const { channelId, claimAmount: amount, newTotalClaimed: totalClaimed } = decoded.args;
      return { kind: 'Claimed', channelId: hexToBytes(channelId), amount, totalClaimed };
    }
    case 'Settled': {
      const { receiver, token, amount } = decoded.args;
      return { kind: 'Settled', receiver: hexToBytes(receiver), token: hexToBytes(token), amount };
    }
    case 'Refunded':
      return { kind: 'Refunded', channelId: hexToBytes(decoded.args.channelId), amount: decoded.args.amount };
    default:
      return null;
  }
}

function decode(topics: [Hex, ...Hex[]], data: Hex) {
  try {
    return decodeEventLog({ abi: eventsAbi, topics, data, strict: true });
  } catch {
    return null;
  }
}

const headerShape = z.object({ number: index, hash: word.optional() });
/** Nodes add members of their own, so nothing else is compared. */
const channelLogs = z.array(z.object({ topics: z.array(word), transactionHash: word, blockNumber: index }));

type ChannelLogs = z.infer<typeof channelLogs>;

/** keccak256 of `WithdrawInitiated(bytes32,uint128,uint40)`. */
export const WITHDRAW_INITIATED = '0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23';

interface EventOptions {
  readonly signal?: AbortSignal;
  readonly rank?: Rank;
  /** Blocks that are searched, up to the named one; MAX_LOG_SPAN by default. */
  readonly span?: number;
  readonly turn?: number;
}

/**
 * The transactions with these topics in the newest blocks, the oldest first, as two providers name them: an event that
 * one hides would end an operation as failed. Rejects with UpstreamFailed without the block or two that agree.
 */
export async function eventTransactionHashes(
  chain: Pick<ChainClient, 'batch'>,
  topics: readonly (string | readonly string[])[],
  block: number,
  { signal, rank = 'settle', span = MAX_LOG_SPAN, turn = 0 }: EventOptions = {},
): Promise<string[]> {
  const range = { fromBlock: toQuantity(Math.max(0, block - span + 1)), toBlock: toQuantity(block) };
  const calls = [
    { method: 'eth_getBlockByNumber', params: [toQuantity(block), false] },
    { method: 'eth_getLogs', params: [{ address: SETTLEMENT, topics, ...range }] },
  ];
  const options = {
    rank,
    turn,
    fromOneProvider: true,
    statements: statementsOf(span),
    ...(signal && { signal }),
  } as const;
  const [header, logs] = await chain.batch(calls, options);
  const isReached = header && 'result' in header && headerShape.safeParse(header.result).data?.number === block;
  const shown = logs && 'result' in logs ? channelLogs.safeParse(logs.result).data : null;
  if (!isReached || !shown)
    throw new UpstreamFailed('chain', 'the logs of payment channels cannot be read up to the block that was asked for');
  return shown.map(({ transactionHash }) => transactionHash);
}

/** Each provider's readable logs of withdrawals, and a refusal if any. Not confirmed. Rejects when nobody answers. */
export async function withdrawalLogs(
  chain: Pick<ChainClient, 'each'>,
  from: number,
  to: number,
): Promise<{ readonly logs: readonly ChannelLogs[]; readonly refusal: Error | undefined }> {
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  const filter = { address: SETTLEMENT, topics: [WITHDRAW_INITIATED], ...range };
  const answers = await chain.each([{ method: 'eth_getLogs', params: [filter] }], { rank: 'collect' });
  const logs = answers.flatMap(([outcome]) => {
    const read = outcome && 'result' in outcome ? channelLogs.safeParse(outcome.result).data : null;
    // A provider that answers another question says nothing.
    const isInRange = read?.every(({ blockNumber }) => from <= blockNumber && blockNumber <= to);
    return read && isInRange ? [read] : [];
  });
  const [refusal] = answers.flatMap(([outcome]) => (outcome && 'error' in outcome ? [outcome.error] : []));
  return { logs, refusal };
}

/** Logs of one block belong to its hash. Those of a span to none: a node that has pruned old blocks tells no lie. */
const statementsOf =
  (span: number): ReadStatements =>
  ([first, second]) => {
    const header = first && 'result' in first ? headerShape.safeParse(first.result).data : null;
    const logs = second && 'result' in second ? channelLogs.safeParse(second.result).data : null;
    if (!header) return [null, null];
    const about = header.hash ?? null;
    const says = logs && JSON.stringify(logs.map(({ topics, transactionHash }) => [transactionHash, ...topics]));
    const said: Statement | null = says ? { about: span === 1 ? about : null, says } : null;
    return [{ about, says: `block ${header.number}` }, said];
  };

/** Reads the blocks since the last call, at first `head` alone. A refused range is halved; a failed call is resumed. */
export function createBlockRanges(read: (from: number, to: number) => Promise<void>, most: number) {
  let next: number | null = null;
  let size = most;

  return async (head: number): Promise<void> => {
    next ??= head;
    while (next <= head) {
      const to = Math.min(head, next + size - 1);
      const blocks = to - next + 1;
      try {
        await read(next, to);
        next = to + 1;
        size = Math.min(most, size * 2);
      } catch (error) {
        // Half of what was asked for, which may be less than the size.
        size = Math.max(1, Math.floor(blocks / 2));
        if (!(error instanceof RpcError) || blocks === 1) throw error;
      }
    }
  };
}
