/** The key of everything on this rail: the scheme's `network + ":" + payment_hash`, the hash as 32 bytes. */
export interface ProofKey {
  readonly network: string;
  readonly paymentHash: Uint8Array;
}

/** An invoice that we offered. A proof of it is checked against this record. Times in Unix milliseconds. */
export interface InvoiceRecord extends ProofKey {
  /** SHA-256 of the canonical binding. The request itself is not stored. */
  readonly requestHash: Uint8Array;
  readonly amountMsat: bigint;
  /** The node's compressed key, 33 bytes. */
  readonly payTo: Uint8Array;
  readonly issuedAt: number;
  /** From then on no proof of it can be accepted: creation + expiry + skew, and a margin. */
  readonly forgetAt: number;
}

/** A payee is known when claims were made for it, by two clients, on so many earlier days. */
export const KNOWN_DAYS = 3;
/** The earlier days that count towards being known. */
export const KNOWN_WINDOW_DAYS = 30;

/** The counters of a facilitator's claim. The caps are checked in the claim's own transaction. */
export interface ClaimAccount {
  /** UTC, `YYYY-MM-DD`. */
  readonly day: string;
  /** The client (for IPv6 its site, a /48), hashed with the day. */
  readonly clientHash: Uint8Array;
  /**
   * The client, hashed with the payee. It shows whether a payee has two clients, and follows none from payee to payee.
   */
  readonly payeeClientHash: Uint8Array;
  /** Claims a day for all clients together. */
  readonly dailyCap: number;
  readonly clientCap: number;
  /** Claims a day for one payee. */
  readonly payeeCap: number;
  /**
   * The open part of the day: anyone's claims. The rest is for known payees; each has at most
   * an equal part of it, whether the others use theirs or not.
   */
  readonly openCap: number;
}

export interface NewClaim extends ProofKey {
  /** 33 bytes. */
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  readonly claimedAt: number;
  /** The scheme forbids deleting the claim before: creation + expiry + skew + 1 h. */
  readonly keepUntil: number;
  /** A claim through our own routes grants this request; null when a facilitator's client claimed it. */
  readonly grant: {
    readonly requestHash: Uint8Array;
    readonly redeemUntil: number;
    /**
     * The route's listed path without the query, such as `/v1/lightning/chain/wallet`; only the operator's reports read
     * it.
     */
    readonly route: string;
    /** The protocol that presented the proof: `x402`, `l402` or `mpp`. */
    readonly protocol: string;
  } | null;
  /** Facilitator only. */
  readonly account: ClaimAccount | null;
}

/**
 * Exactly one caller ever gets `claimed` for a key, with one exception: a claim of ours (with a grant) replaces a
 * facilitator's claim for another node. A routing node learns the payment's preimage. It can sign its own invoice over
 * the same payment hash and claim that first. The buyer, who has paid our node, must not lose by it. A claim that a cap
 * refuses is not made.
 */
export type ClaimOutcome = 'claimed' | 'duplicate' | ReachedCap;

/** The part of the day that is used up. `known_cap`: a known payee's share, and the open part too. */
export type ReachedCap = 'daily_cap' | 'client_cap' | 'payee_cap' | 'known_cap' | 'open_cap';

/** A stored claim. `grant` is null for a facilitator's claim. */
export interface Claim extends ProofKey {
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  readonly claimedAt: number;
  readonly grant: {
    readonly requestHash: Uint8Array;
    readonly state: 'claimed' | 'delivered';
    /** Until then a presentation gets the answer: 7 days from the claim, or 15 minutes from the delivery. */
    readonly redeemUntil: number;
    readonly deliveredAt: number | null;
    /** Whether the answer for every later presentation is stored. It is stored once and kept until `redeemUntil`. */
    readonly answered: boolean;
    /** The protocol that presented the proof first. Null in a row from before this was stored. */
    readonly protocol: string | null;
  } | null;
}

/** Exact counts of the facilitator's claims for its clients: of one day, and in all. */
export interface FacilitatorCounts {
  readonly total: number;
  readonly today: number;
  /** Distinct `payTo`. */
  readonly nodes: number;
  /** Claims whose `payTo` is the given one. */
  readonly own: number;
}

/**
 * Durable state of the Lightning rail, shared by our routes and the facilitator. When a promise resolves, its change is
 * on disk. Bodies arrive encrypted, and no method gets a preimage. Every method rejects when the store cannot answer;
 * the caller then does not know whether the change was made.
 */
export interface LightningStore {
  /**
   * Stores an offered invoice and the reply that was made for it. Rejects when the key has a record, because an invoice
   * is offered once.
   */
  recordInvoice(record: InvoiceRecord, sealedReply: Uint8Array): Promise<void>;
  findInvoice(key: ProofKey): Promise<InvoiceRecord | null>;
  /** The reply kept with the invoice; null when there is none. */
  keptReply(key: ProofKey): Promise<Uint8Array | null>;
  /**
   * Concurrent claims share one durable transaction (group commit).
   * The outcome names the first that applies: a spent proof, the day's cap, the client's, the payee's, the part of the
   * day.
   */
  claim(claim: NewClaim): Promise<ClaimOutcome>;
  findClaim(key: ProofKey): Promise<Claim | null>;
  /**
   * Takes the lease of a granted claim that is still redeemable. False while a lease runs, also one of the same holder.
   */
  takeLease(key: ProofKey, holder: string, now: number, until: number): Promise<boolean>;
  releaseLease(key: ProofKey, holder: string): Promise<void>;
  /**
   * Releases every lease of other processes. Call it only when all of them are dead. A holder's name begins with its
   * process's boot id.
   */
  releaseLeasesExcept(bootId: string): Promise<number>;
  /** Releases the leases of one process, which must be dead. */
  releaseLeasesOf(bootId: string): Promise<number>;
  /**
   * Stores the answer of a granted claim, once. False when there is one already, or when the holder does not have the
   * lease.
   */
  storeAnswer(key: ProofKey, holder: string, sealedBody: Uint8Array): Promise<boolean>;
  answer(key: ProofKey): Promise<Uint8Array | null>;
  /**
   * Marks a granted claim delivered; its answer is then kept until `keepUntil`. Only the first call does so and returns
   * true.
   */
  delivered(key: ProofKey, now: number, keepUntil: number): Promise<boolean>;
  facilitatorCounts(day: string, ownPayTo: Uint8Array | null): Promise<FacilitatorCounts>;
  /** Claims of one day through the facilitator by one client. */
  clientCount(day: string, clientHash: Uint8Array): Promise<number>;
  /** Bytes of kept replies and answers. */
  bodyBytes(): Promise<number>;
  /** Bytes of kept replies only: of offers that are unpaid, or paid and not answered yet. */
  offeredBytes(): Promise<number>;
  /**
   * Deletes invoices past `forgetAt`, claims past `keepUntil` and `redeemUntil`, expired answers, and the counters of
   * old days.
   */
  prune(now: number): Promise<void>;
  ping(): Promise<void>;
}
