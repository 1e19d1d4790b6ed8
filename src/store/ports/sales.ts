/** Where a USDC payment stands; what each means and which moves are legal is told in `src/payment/README.md`. */
export type PaymentState = 'reserved' | 'settling' | 'unknown' | 'settled' | 'failed';

/** What identifies an authorization on its chain, as bytes: never its signature, never a spelling. */
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
  /** SHA-256 of all that an authorization is; null in a row from before it was kept. */
  readonly authorizationHash: Uint8Array | null;
  readonly requestHash: Uint8Array;
  /** What this request cost when it was reserved; null in a row from before it was kept. */
  readonly price: bigint | null;
  /** What the evidence says was paid; null before the payment has settled, and in a row from before it was kept. */
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
}

/** What a reservation sets; the rest comes with later moves. */
export interface NewPayment extends Omit<Payment, SetLater | 'authorizationHash' | 'price'> {
  readonly authorizationHash: Uint8Array;
  readonly price: bigint;
  /** The route's listed path without the query, such as `/v1/paid/chain/wallet`; the operator's reports alone read it. */
  readonly route: string;
}

type SetLater =
  | 'state'
  | 'signature'
  | 'charged'
  | 'payerHasCode'
  | 'checkedBlock'
  | 'transaction'
  | 'block'
  | 'reason'
  | 'endedAt'
  | 'deliveries';

/** Columns that a move may set along with the state; a signature of null wipes it. */
export interface PaymentChange {
  readonly bootId?: string;
  readonly signature?: Uint8Array | null;
  readonly checkedBlock?: number | null;
  readonly payerHasCode?: boolean;
  readonly charged?: bigint;
  readonly transaction?: Uint8Array | null;
  readonly block?: number | null;
  readonly reason?: string | null;
  readonly settlingAt?: number;
  readonly endedAt?: number;
}

/** What a move does to the kept reply; times in Unix milliseconds. */
export type ReplyChange = { readonly store: Uint8Array } | { readonly keepUntil: number } | 'drop';

/**
 * The ledger's store. Every method is one atomic step, durable once it resolves.
 * It knows rows and guards, not rules: which moves are legal is `payment/ledger.ts`'s to say.
 */
export interface LedgerStore {
  find(key: PaymentKey): Promise<Payment | null>;
  get(id: string): Promise<Payment | null>;
  /** Payments whose authorization has this nonce or whose transaction has this hash, oldest first, at most `limit`: a batch is one transaction. */
  findByHash(hash: Uint8Array, limit: number): Promise<Payment[]>;
  /** The payment that holds this identifier: there is one at most, and one that failed holds none. */
  findByIdentifier(identifierHash: Uint8Array): Promise<Payment | null>;
  /**
   * Inserts a reservation unless the key has a row, another payment holds the identifier or the payer has `maxOpen` open ones already
   * (0: any number). A row of the very same authorization that failed for `reusableReason` is taken over for this request (null: none is).
   * True for exactly one caller.
   */
  reserve(payment: NewPayment, maxOpen: number, reusableReason: string | null): Promise<boolean>;
  /**
   * Sets the state where it is one of `from`, and what becomes of the reply, in one step; false when it was not. With `fencingToken`, false where the
   * lease of that number is over: a store that one process holds has none.
   */
  move(
    id: string,
    from: readonly PaymentState[],
    to: PaymentState,
    change: PaymentChange,
    reply?: ReplyChange,
    fencingToken?: number,
  ): Promise<boolean>;
  /** Notes the transactions that are about to be broadcast, all in one step; returns the ids of the rows in one of these states, the only ones noted. With `fencingToken`, none where the lease of that number is over: a store that one process holds has none. */
  noteBroadcast(
    entries: readonly { id: string; transaction: Uint8Array }[],
    where: readonly PaymentState[],
    fencingToken?: number,
  ): Promise<ReadonlySet<string>>;
  /**
   * Forgets a row in one of these states, its reply with it; false when it was not, or when a transaction is noted for it:
   * whoever settles may note one at any moment, and then the row is owed an end.
   * One that had failed before becomes `failed` again instead: the chain has its authorization for everybody to see.
   */
  release(id: string, from: readonly PaymentState[]): Promise<boolean>;
  /** Sum of a payer's other open payments that were reserved before this one; of two processes' at the same moment each counts the other's rather than none. */
  openBefore(key: PaymentKey, id: string): Promise<bigint>;
  /** Counts one delivery and returns the reply, unless there were `max` already or it is gone at `now`. */
  takeReply(id: string, max: number, now: number): Promise<Uint8Array | null>;
  /** Deletes replies whose time is over at `now`. */
  purgeReplies(now: number): Promise<number>;
  /** Bytes of all kept replies. */
  replyBytes(): Promise<number>;
  /** Rows in one of these states, oldest first, at most `limit`; with `after`, those whose id comes after it. */
  listByState(states: readonly PaymentState[], limit: number, after?: string): Promise<Payment[]>;
  /** Whether a payment of this payer on this key's network and contract has ever settled in this ledger. */
  hasSettled(payer: Omit<PaymentKey, 'nonce'>): Promise<boolean>;
  /** Open rows of any process but these, oldest first. */
  listLeftBehind(living: readonly string[], limit: number): Promise<Payment[]>;
  /** Rejects when the store cannot be read; costs one row. */
  ping(): Promise<void>;
  countByState(): Promise<Record<PaymentState, number>>;
  close(): Promise<void>;
}
