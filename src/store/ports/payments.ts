import type { ChannelCharge, ChannelState } from './channel-state.ts';

/** The state of a USDC payment. `src/payment/STEPS.md` says what each means and which moves are legal. */
export type PaymentState = 'reserved' | 'settling' | 'unknown' | 'settled' | 'failed';

/** The key of an authorization on its chain, as bytes. The signature is no part of it. */
export interface PaymentKey {
  readonly network: string;
  readonly contract: Uint8Array;
  readonly payer: Uint8Array;
  readonly nonce: Uint8Array;
}

/** One authorization's row. Amounts in USDC base units, times in Unix milliseconds. */
export interface Payment extends PaymentKey {
  readonly id: string;
  readonly state: PaymentState;
  readonly bootId: string;
  /** What the payer signed. */
  readonly amount: bigint;
  readonly payTo: Uint8Array;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly signature: Uint8Array | null;
  /**
   * SHA-256 of the whole authorization (contract, signed fields, signature). Null in a row from before it was stored.
   */
  readonly authorizationHash: Uint8Array | null;
  readonly requestHash: Uint8Array;
  /** The price of the request when it was reserved. Null in a row from before it was stored. */
  readonly price: bigint | null;
  /**
   * The amount paid, from the evidence. Null before the payment has settled, and in a row from before it was stored.
   */
  readonly charged: bigint | null;
  /** Whether code stood at the payer's address when the payment was verified; null before that. */
  readonly payerHasCode: boolean | null;
  readonly clientHash: Uint8Array;
  readonly identifierHash: Uint8Array | null;
  readonly checkedBlock: number | null;
  readonly transaction: Uint8Array | null;
  readonly block: number | null;
  readonly reason: string | null;
  readonly reservedAt: number;
  readonly endedAt: number | null;
  readonly deliveries: number;
  /**
   * When the answer was first sent over a connection that did not break. Null before that, and in a row from before
   * this was stored.
   */
  readonly deliveredAt: number | null;
  /** The voucher that this sale charges. Null on every rail without channels. */
  readonly channel: PaymentChannel | null;
  /** The call that settles the payment, where it is another one than the token's transfer. Wiped with the signature. */
  readonly calldata: Uint8Array | null;
  /** The protocol that presented the payment: `x402` or `mpp`. Null in a row from before this was stored. */
  readonly protocol: string | null;
}

/** A sale's part in a channel. */
export interface PaymentChannel extends Omit<ChannelCharge, 'signature'> {
  /** The channel right after the charge. Null before it. */
  readonly after: ChannelAfter | null;
}

/** What a sale shows of its channel's state. */
export type ChannelAfter = Omit<ChannelState, 'block'>;

/** The fields that a reservation sets. Later moves set the others. */
export interface NewPayment extends Omit<Payment, SetLater | 'authorizationHash' | 'price' | 'channel' | 'protocol'> {
  readonly authorizationHash: Uint8Array;
  readonly price: bigint;
  /**
   * The route's listed path without the query, such as `/v1/paid/chain/wallet`; the operator's reports alone read it.
   */
  readonly route: string;
  readonly protocol: string;
  /**
   * The voucher that pays this sale from a channel, or is presented with the deposit. Absent on every rail without
   * channels.
   */
  readonly channel?: ChannelCharge | null;
}

type SetLater =
  | 'calldata'
  | 'state'
  | 'signature'
  | 'charged'
  | 'payerHasCode'
  | 'checkedBlock'
  | 'transaction'
  | 'block'
  | 'reason'
  | 'endedAt'
  | 'deliveries'
  | 'deliveredAt';

/** Columns that a move may set along with the state; a signature of null wipes it. */
export interface PaymentChange {
  readonly bootId?: string;
  readonly signature?: Uint8Array | null;
  readonly calldata?: Uint8Array | null;
  readonly checkedBlock?: number | null;
  readonly payerHasCode?: boolean;
  readonly charged?: bigint;
  readonly transaction?: Uint8Array | null;
  readonly block?: number | null;
  readonly reason?: string | null;
  readonly settlingAt?: number;
  readonly endedAt?: number;
}

/** The change that a move makes to the kept reply. Times in Unix milliseconds. */
export type ReplyChange = { readonly store: Uint8Array } | { readonly keepUntil: number } | 'drop';

/**
 * The ledger's store. Every method is one atomic step, durable once it resolves.
 * It knows rows and guards. `payment/ledger.ts` decides which moves are legal.
 */
export interface LedgerStore {
  find(key: PaymentKey): Promise<Payment | null>;
  get(id: string): Promise<Payment | null>;
  /**
   * Payments whose authorization has this nonce or whose transaction has this hash, oldest first, at most `limit`.
   * There may be several, because a batch is one transaction.
   */
  findByHash(hash: Uint8Array, limit: number): Promise<Payment[]>;
  /** The payment that holds this identifier. There is at most one; a failed payment holds none. */
  findByIdentifier(identifierHash: Uint8Array): Promise<Payment | null>;
  /**
   * Inserts a reservation, unless the key has a row, another payment holds the identifier, or the payer already has
   * `maxOpen` open ones (0: any number). A sale in a channel is not inserted either while another sale or a refund of
   * its channel is open, when the channel is unknown, or when another row that has not failed holds the same voucher. A
   * row of exactly the same authorization that failed for `reusableReason` is reused for this request (null: no row is
   * reused). True for exactly one caller.
   */
  reserve(payment: NewPayment, maxOpen: number, reusableReason: string | null): Promise<boolean>;
  /**
   * Sets the state and changes the reply in one step. False when the state was none of `from`. A sale with a deposit
   * into a channel charges its voucher in the same step as it becomes `settled`: the channel's charges rise to
   * `channel.max`, its balance by `amount` unless a state of that block or a later one is noted, `charged` is the
   * price, and `channel.after` is set.
   * With `fencingToken`, false also when the lease with this token has ended. A store that one process holds has no
   * lease.
   */
  move(
    id: string,
    from: readonly PaymentState[],
    to: PaymentState,
    change: PaymentChange,
    reply?: ReplyChange,
    fencingToken?: number,
  ): Promise<boolean>;
  /**
   * Notes the transactions that are about to be broadcast, in one step. Only rows in one of the states `where` are
   * noted; returns their ids. With `fencingToken`, notes none when the lease with this token has ended. A store that
   * one process holds has no lease.
   */
  noteBroadcast(
    entries: readonly { id: string; transaction: Uint8Array }[],
    where: readonly PaymentState[],
    fencingToken?: number,
  ): Promise<ReadonlySet<string>>;
  /**
   * Deletes a row in one of these states, and its reply. False when it was in another state, or when a transaction is
   * noted for it: the settler may note one at any moment, and then the row must be settled or failed. A row that had
   * failed before becomes `failed` again instead, because its authorization is public on the chain.
   */
  release(id: string, from: readonly PaymentState[]): Promise<boolean>;
  /**
   * Sum of a payer's other open payments that were reserved before this one, under these contracts: by default the
   * key's own. When two processes reserve at the same moment, at least one counts the other.
   */
  sumOfOpen(key: PaymentKey, id: string, contracts?: readonly Uint8Array[]): Promise<bigint>;
  /**
   * Counts one delivery and returns the reply. Null when there were `max` deliveries already, or when the reply has
   * expired at `now`.
   */
  takeReply(id: string, max: number, now: number): Promise<Uint8Array | null>;
  /**
   * Notes the first delivery of a settled payment's reply, at `now`. The reply is then kept until `keepUntil`. Later
   * calls return false.
   */
  delivered(id: string, now: number, keepUntil: number): Promise<boolean>;
  /**
   * Deletes the oldest of the replies that are kept until a time between `from` (exclusive) and `to` (inclusive), until
   * they have `bytes` bytes at the most. Returns their number.
   */
  trimReplies(from: number, to: number, bytes: number): Promise<number>;
  /** Deletes replies that have expired at `now`. Returns their number. */
  purgeReplies(now: number): Promise<number>;
  /** Bytes of all kept replies. */
  replyBytes(): Promise<number>;
  /** Rows in one of these states, oldest first, at most `limit`. With `after`, only rows with a greater id. */
  listByState(states: readonly PaymentState[], limit: number, after?: string): Promise<Payment[]>;
  /** Whether a payment of this payer on this key's network and contract has ever settled in this ledger. */
  hasSettled(payer: Omit<PaymentKey, 'nonce'>): Promise<boolean>;
  /**
   * Open rows of all other processes than these, oldest first, at most `limit`. With `after`, only rows with a greater
   * id.
   */
  listLeftBehind(living: readonly string[], limit: number, after?: string): Promise<Payment[]>;
  /**
   * Rejects when the store cannot be read, and when it cannot be written. Reads one row. It writes only after a write
   * has failed.
   */
  ping(): Promise<void>;
  countByState(): Promise<Record<PaymentState, number>>;
  close(): Promise<void>;
}

/** Payments that came in on one rail within a span. */
export interface SettledSum {
  readonly rail: 'usdc' | 'lightning';
  /** The contract that payers signed for, which distinguishes `usdc-exact` from `usdc-gateway`. Null on Lightning. */
  readonly contract: Uint8Array | null;
  readonly count: number;
  /**
   * Base units of USDC, or millisatoshis. Of a sale in a channel what was charged, also when it brought a larger
   * deposit.
   */
  readonly amount: bigint;
}

/** Reader of the income. */
export interface SettledReads {
  /**
   * Sums of the payments that settled, or were claimed through our own routes, from `from` (inclusive) to `to`
   * (exclusive), in Unix milliseconds. Reads only the rows of this span.
   */
  settledBetween(from: number, to: number): Promise<SettledSum[]>;
}
