import type { Hex } from 'viem';
import { decodeEventLog, parseAbi } from 'viem/utils';
import { hexToBytes } from '../../../lib/hex.ts';
import type { MinedTransaction } from '../../operation.ts';
import { SETTLEMENT } from './scheme.ts';

const abi = parseAbi([
  'event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed)',
  'event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount)',
  'event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount)',
]);

/**
 * What one event of the settlement contract says. Amounts in base units of the token. Ids have 32 bytes, addresses 20.
 * `Settled` is a sweep.
 */
export type ChannelEvent =
  | { readonly kind: 'Claimed'; readonly channelId: Uint8Array; readonly amount: bigint; readonly totalClaimed: bigint }
  | { readonly kind: 'Settled'; readonly receiver: Uint8Array; readonly token: Uint8Array; readonly amount: bigint }
  | { readonly kind: 'Refunded'; readonly channelId: Uint8Array; readonly amount: bigint };

/**
 * Reads the settlement contract's claims, sweeps and refunds in a mined transaction, in their order. A transaction that
 * reverted has none. An event names only the id of its channel, so the caller compares it with the ids of its own
 * channels.
 */
export function channelEvents({ status, logs }: Pick<MinedTransaction, 'status' | 'logs'>): ChannelEvent[] {
  if (status !== '0x1') return [];
  return logs.flatMap((log) => {
    const event = log.address.toLowerCase() === SETTLEMENT ? eventOf(log) : null;
    return event ? [event] : [];
  });
}

/** Null for an event that we do not read, and for data that is not what the contract logs. */
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
    return decodeEventLog({ abi, topics, data, strict: true });
  } catch {
    return null;
  }
}
