import type { ChannelCharge, ChannelConfig, ChannelState } from './channel-state.ts';
import type { ChannelAfter, NewPayment, Payment } from './payments.ts';

/** A channel in the ledger. Amounts in base units of the token, times in Unix milliseconds. */
export interface Channel extends ChannelConfig {
  /** 32 bytes. */
  readonly id: Uint8Array;
  readonly network: string;
  /** The sum of all calls that were paid from the channel. */
  readonly charged: bigint;
  /** The part of `charged` that can never be claimed. */
  readonly writtenOff: bigint;
  /** The last charged voucher. Null before the first charge. */
  readonly signature: Uint8Array | null;
  /** The chain's state as it was last read, raised by the deposits that were settled since. */
  readonly state: ChannelState;
  /**
   * Whether a release that asks two providers read the state. One that an older release noted may be one provider's
   * lie.
   */
  readonly isConfirmed: boolean;
  /**
   * When the contract refused to record the channel's charges. Null where it has not, and once nothing is left to
   * claim.
   */
  readonly claimRefusedAt: number | null;
  /** When the state was last read from the chain. */
  readonly readAt: number;
  /** When the last voucher was charged; when the channel was first seen before that. */
  readonly usedAt: number;
  /** Since when an unclaimed charge waits. Null when all charges are claimed or written off. */
  readonly unclaimedSince: number | null;
}

/** A sale that a voucher pays. Its row is `settled` from the start. */
export type VoucherSale = Omit<NewPayment, 'channel'> & { readonly channel: ChannelCharge };

/** What our relayer does with channels apart from deposits. */
export type OperationKind = 'claim' | 'refund';

/** One claim or refund, from the decision to send it until its end is known. */
export interface ChannelOperation {
  readonly id: string;
  readonly network: string;
  readonly kind: OperationKind;
  /** The channel of a refund; null for a claim. */
  readonly channelId: Uint8Array | null;
  /** A refund: the requested amount. A claim: the sum of what its rows record anew. Base units. */
  readonly amount: bigint;
  /** The call that is sent to the settlement contract. Null once the operation has ended. */
  readonly calldata: Uint8Array | null;
  /** The last noted transaction; null before one is noted. */
  readonly transaction: Uint8Array | null;
  readonly state: 'open' | 'done' | 'failed';
  readonly reason: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** The end of an operation. `amount` in base units: what the evidence shows. */
export type OperationEnd =
  | { readonly state: 'done'; readonly amount: bigint; readonly transaction: Uint8Array; readonly endedAt: number }
  | { readonly state: 'failed'; readonly reason: string; readonly endedAt: number };

/**
 * The store of payment channels, over the same database as the sales. Every method is one atomic step, durable once it
 * resolves.
 */
export interface ChannelStore {
  get(id: Uint8Array): Promise<Channel | null>;
  /**
   * Notes what the providers agree on of a channel, at a block that was named, and inserts the channel when it is new.
   * A state of an older block than the noted one changes nothing, unless the noted one is not confirmed or is far ahead
   * of the chain. Lowers `unclaimedSince` to null when nothing is left to claim. Returns the channel as it is now.
   */
  note(
    channel: ChannelConfig & { readonly id: Uint8Array; readonly network: string },
    state: ChannelState,
    now: number,
  ): Promise<Channel>;
  /**
   * The sale that charged the channel up to exactly `max`, or is about to. There is at most one that has not failed.
   */
  findSale(channelId: Uint8Array, max: bigint): Promise<Payment | null>;
  /**
   * What of a channel is open, and keeps it from being charged: a deposit that is not settled yet, or a refund that has
   * not ended.
   */
  findOpen(channelId: Uint8Array): Promise<'deposit' | 'refund' | null>;
  /**
   * Charges a voucher and keeps the reply, in one step: inserts the sale as `settled`, sets the channel's charges from
   * `max - price` to `max`, and keeps the voucher. Returns the channel's state as the sale's row shows it. Null, and
   * nothing is changed, when the charges differ from `max - price`, a deposit or a refund of the channel is open, the
   * same voucher or identifier has another row, `max` is more than the noted balance less the noted withdrawal, the
   * noted state is not confirmed, or the contract has refused the charges.
   */
  charge(sale: VoucherSale, reply: Uint8Array, keepUntil: number): Promise<ChannelAfter | null>;
  /**
   * Channels with unclaimed charges, those that wait longest first. With `after`: only channels with a greater
   * (unclaimedSince, id).
   */
  listUnclaimed(
    network: string,
    limit: number,
    after?: { readonly unclaimedSince: number; readonly id: Uint8Array },
  ): Promise<Channel[]>;
  /**
   * Channels of which the ledger says that something was claimed, in the order of their ids. With `after`: only greater
   * ids.
   */
  listClaimed(network: string, limit: number, after?: Uint8Array): Promise<Channel[]>;
  /** Claims that ended as `done` from `from` (inclusive) to `to` (exclusive), in Unix milliseconds, oldest first. */
  listDoneClaims(network: string, from: number, to: number): Promise<ChannelOperation[]>;
  /**
   * Channels with money or unclaimed charges whose state is not confirmed, or is from before the twentieth block after
   * their last deposit where `head` is that block or later; by id. With `after`: only channels with a greater id.
   */
  listToRead(network: string, head: number, limit: number, after?: Uint8Array): Promise<Channel[]>;
  /**
   * Notes that the contract refuses to record the channel's charges. It takes no voucher until nothing is left to
   * claim.
   */
  refuseClaim(id: Uint8Array, now: number): Promise<void>;
  /** How many channels the contract has refused to record the charges of. */
  countRefused(network: string): Promise<number>;
  /** Writes off what can never be claimed. `upTo`: what is charged now. False when the charges have risen since. */
  writeOff(id: Uint8Array, amount: bigint, upTo: bigint): Promise<boolean>;
  /** Whether there is a row of any channel. */
  hasAny(network: string): Promise<boolean>;
  /** Sums over all channels, in base units: charged = claimed + claimable + writtenOff. */
  totals(network: string): Promise<{ readonly charged: bigint; readonly claimed: bigint; readonly writtenOff: bigint }>;
  /**
   * What is charged and neither claimed nor written off in channels whose oldest unclaimed charge is from before
   * `beforeMs`, in base units.
   */
  totalsOverdue(network: string, beforeMs: number): Promise<bigint>;
  /**
   * Begins an operation. False when it is a refund and its channel has an open deposit, an open refund, charges other
   * than `charged`, or a refund that was done after `pausedSince`. From then on the channel takes no voucher and no
   * deposit until the refund has ended.
   */
  begin(operation: NewOperation, terms?: RefundTerms): Promise<boolean>;
  operation(id: string): Promise<ChannelOperation | null>;
  /** Operations that have not ended, oldest first. */
  openOperations(limit: number): Promise<ChannelOperation[]>;
  /**
   * Notes the transactions of open operations before they are sent, as for payments. Returns the ids that are still
   * open. With `fencingToken`, notes none when the lease with this token has ended.
   */
  noteBroadcast(
    entries: readonly { id: string; transaction: Uint8Array }[],
    fencingToken?: number,
  ): Promise<ReadonlySet<string>>;
  /** Ends an open operation and wipes its calldata. False when it has ended before. */
  end(id: string, end: OperationEnd): Promise<boolean>;
  /**
   * Deletes rows of channels that have bought nothing and were not read since `beforeMs`, at most `limit` of them. A
   * channel with an open refund, or with any sale, stays: also a deposit that failed may have been made since by a
   * third party. Returns how many were deleted.
   */
  prune(beforeMs: number, limit: number): Promise<number>;
  /** The last refund of a channel that ended as `done`; null without one. */
  lastRefund(channelId: Uint8Array): Promise<ChannelOperation | null>;
  /** What all refunds of a channel have given back, in base units. */
  getRefunded(channelId: Uint8Array): Promise<bigint>;
  /** The oldest operation that ended as `done` with this transaction; null without one. */
  findDone(transaction: Uint8Array): Promise<ChannelOperation | null>;
}

/**
 * Under which conditions a refund begins. `charged`: in base units. `pausedSince`: Unix milliseconds; without it a
 * refund may follow another at once.
 */
export interface RefundTerms {
  readonly charged: bigint;
  readonly pausedSince?: number;
}

export type NewOperation = Pick<ChannelOperation, 'id' | 'network' | 'kind' | 'channelId' | 'amount' | 'createdAt'> & {
  readonly calldata: Uint8Array;
};
