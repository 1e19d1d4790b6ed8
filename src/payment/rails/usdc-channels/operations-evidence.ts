import { decodeEventLog, type Hex, parseAbi } from 'viem';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import type { MinedTransaction } from '../../operation.ts';
import { SETTLEMENT } from './scheme.ts';

const abi = parseAbi([
  'event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance)',
  'event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed)',
  'event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount)',
  'event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount)',
  'event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter)',
  'event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount)',
]);

/** What one event of the settlement contract says. Amounts in base units of the token. `channelId` has 32 bytes. */
export type ChannelEvent =
  | { readonly kind: 'Deposited'; readonly channelId: Uint8Array; readonly amount: bigint; readonly newBalance: bigint }
  | { readonly kind: 'Claimed'; readonly channelId: Uint8Array; readonly amount: bigint; readonly totalClaimed: bigint }
  /** Everything that was recorded for our receiver in our token was paid out. */
  | { readonly kind: 'Settled'; readonly amount: bigint }
  | { readonly kind: 'Refunded' | 'WithdrawFinalized'; readonly channelId: Uint8Array; readonly amount: bigint }
  /** `finalizeAfter` in Unix seconds: from then on the payer can take the amount. */
  | {
      readonly kind: 'WithdrawInitiated';
      readonly channelId: Uint8Array;
      readonly amount: bigint;
      readonly finalizeAfter: number;
    };

interface Beneficiary {
  /** 20 bytes each. */
  readonly receiver: Uint8Array;
  readonly token: Uint8Array;
}

/**
 * Reads the settlement contract's events in a mined transaction, in their order. A transaction that reverted has none. Sweeps of other receivers and
 * tokens are left out. An event about a channel names only its id, so the caller compares it with the ids of its own channels.
 */
export function channelEvents(
  { status, logs }: Pick<MinedTransaction, 'status' | 'logs'>,
  ours: Beneficiary,
): ChannelEvent[] {
  if (status !== '0x1') return [];
  return logs.flatMap((log) => {
    const event = log.address.toLowerCase() === SETTLEMENT ? eventOf(log, ours) : null;
    return event ? [event] : [];
  });
}

/** Null for an event that we do not read, and for data that is not what the contract logs. */
function eventOf({ topics, data }: MinedTransaction['logs'][number], ours: Beneficiary): ChannelEvent | null {
  const decoded = decode(topics as [Hex, ...Hex[]], data as Hex);
  switch (decoded?.eventName) {
    case 'Deposited':
      return { kind: 'Deposited', ...channelAnd(decoded.args), newBalance: decoded.args.newBalance };
    case 'Claimed': {
      const { channelId, claimAmount: amount, newTotalClaimed: totalClaimed } = decoded.args;
      return { kind: 'Claimed', ...channelAnd({ channelId, amount }), totalClaimed };
    }
    case 'Settled': {
      const { receiver, token, amount } = decoded.args;
      const isOurs = isSame(receiver, ours.receiver) && isSame(token, ours.token);
      return isOurs ? { kind: 'Settled', amount } : null;
    }
    case 'WithdrawInitiated':
      return { kind: 'WithdrawInitiated', ...channelAnd(decoded.args), finalizeAfter: decoded.args.finalizeAfter };
    case 'Refunded':
    case 'WithdrawFinalized':
      return { kind: decoded.eventName, ...channelAnd(decoded.args) };
    default:
      return null;
  }
}

function decode(topics: [Hex, ...Hex[]], data: Hex) {
  try {
    return decodeEventLog({ abi, topics, data, strict: true });
  } catch {
    return null;
  }
}

function channelAnd({ channelId, amount }: { channelId: Hex; amount: bigint }) {
  return { channelId: hexToBytes(channelId), amount };
}

const isSame = (text: string, bytes: Uint8Array): boolean => text.toLowerCase() === bytesToHex(bytes);
