/** The key of everything on this rail: the scheme's `network + ":" + payment_hash`, the hash as 32 bytes. */
export interface ProofKey {
  readonly network: string;
  readonly paymentHash: Uint8Array;
}

/** An invoice that we offered: what a proof of it is judged against. Times in Unix milliseconds. */
export interface InvoiceRecord extends ProofKey {
  /** SHA-256 of the canonical binding: the request itself is not kept. */
  readonly requestHash: Uint8Array;
  readonly amountMsat: bigint;
  /** The node's compressed key, 33 bytes. */
  readonly payTo: Uint8Array;
  readonly issuedAt: number;
  /** When no proof of it can be accepted any more: creation + expiry + skew, and a margin. */
  readonly forgetAt: number;
}

/** Where a facilitator's claim is counted; the caps are judged in the claim's own transaction. */
export interface ClaimAccount {
  /** UTC, `YYYY-MM-DD`. */
  readonly day: string;
  /** The client, or its site where it is an IPv6 network, hashed with the day. */
  readonly clientHash: Uint8Array;
  /** Claims a day for all. */
  readonly dailyCap: number;
  readonly clientCap: number;
  /** How many of the day's claims may be for payees that were first seen on this day. */
  readonly newPayeeCap: number;
}

export interface NewClaim extends ProofKey {
  /** 33 bytes. */
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  readonly claimedAt: number;
  /** The scheme forbids forgetting the claim before: creation + expiry + skew + 1 h. */
  readonly keepUntil: number;
  /** A claim through our own routes grants this request; null when a facilitator's client claimed it. */
  readonly grant: {
    readonly requestHash: Uint8Array;
    readonly redeemUntil: number;
    /** The route's listed path without the query, such as `/v1/lightning/chain/wallet`; the operator's reports alone read it. */
    readonly route: string;
  } | null;
  /** Facilitator only. */
  readonly account: ClaimAccount | null;
}

/**
 * Exactly one caller hears `claimed` for a key, ever, but for one case: a claim that grants takes the place of a facilitator's for another
 * node. Whoever carries a payment learns its preimage, can sign an invoice of his own over the same hash and claim that; it must not
 * cost the buyer what he has paid our node for. A cap claims nothing.
 */
export type ClaimOutcome = 'claimed' | 'duplicate' | 'daily_cap' | 'client_cap' | 'new_payee_cap';

/** A claim as it stands. `grant` is null for the facilitator's. */
export interface Claim extends ProofKey {
  readonly payTo: Uint8Array;
  readonly amountMsat: bigint;
  readonly claimedAt: number;
  readonly grant: {
    readonly requestHash: Uint8Array;
    readonly state: 'claimed' | 'delivered';
    /** Until then the claim gets its answer: 7 days from the claim, 15 minutes from the delivery. */
    readonly redeemUntil: number;
    readonly deliveredAt: number | null;
    /** Whether the answer that every later presentation gets is stored; it is until `redeemUntil`, and never made again after. */
    readonly answered: boolean;
  } | null;
}

/** Exactly what the facilitator has claimed for its clients: a day's count, and all of it. */
export interface FacilitatorCounts {
  readonly total: number;
  readonly today: number;
  /** Distinct `payTo`. */
  readonly nodes: number;
  /** Claims whose `payTo` is the given one. */
  readonly own: number;
}

/**
 * Durable state of the Lightning rail, shared by our routes and the facilitator. What a promise resolves with is on disk.
 * Bodies arrive sealed; no method ever sees a preimage. Every method rejects when the store cannot answer, and then nothing happened
 * that the caller may count on.
 */
export interface LightningStore {
  /** Keeps an offered invoice and the reply that was made for it; rejects when the key has a record, since an invoice is offered once. */
  recordInvoice(record: InvoiceRecord, sealedReply: Uint8Array): Promise<void>;
  findInvoice(key: ProofKey): Promise<InvoiceRecord | null>;
  /** The reply kept with the invoice, or null when it is lost. */
  keptReply(key: ProofKey): Promise<Uint8Array | null>;
  /** Concurrent claims share one durable transaction (group commit). A spent proof is told before a cap, the day's cap before the client's, that before the new payees'. */
  claim(claim: NewClaim): Promise<ClaimOutcome>;
  findClaim(key: ProofKey): Promise<Claim | null>;
  /** Takes the right to serve a granted claim that is still redeemable: false while a lease runs, the same holder's too. */
  takeLease(key: ProofKey, holder: string, now: number, until: number): Promise<boolean>;
  releaseLease(key: ProofKey, holder: string): Promise<void>;
  /** Gives back every lease that is not of this process: only for a process that knows that all others are dead. Holders begin with their boot id. */
  releaseLeasesExcept(bootId: string): Promise<number>;
  /** Gives back the leases of one process, which must be dead. */
  releaseLeasesOf(bootId: string): Promise<number>;
  /** Stores the answer of a granted claim, once: false when there is one or the lease is not the holder's. */
  storeAnswer(key: ProofKey, holder: string, sealedBody: Uint8Array): Promise<boolean>;
  answer(key: ProofKey): Promise<Uint8Array | null>;
  /** Marks a granted claim delivered, the first time only; its answer is kept until `keepUntil`. */
  delivered(key: ProofKey, now: number, keepUntil: number): Promise<boolean>;
  facilitatorCounts(day: string, ownPayTo: Uint8Array | null): Promise<FacilitatorCounts>;
  /** Claims of one day through the facilitator by one client. */
  clientCount(day: string, clientHash: Uint8Array): Promise<number>;
  /** Bytes of kept replies and answers. */
  bodyBytes(): Promise<number>;
  /** Bytes of kept replies alone: of offers that are unpaid, or paid and not answered yet. */
  offeredBytes(): Promise<number>;
  /** Forgets what may be forgotten: invoices past `forgetAt`, claims past `keepUntil` and `redeemUntil`, answers past their time, old days. */
  prune(now: number): Promise<void>;
  ping(): Promise<void>;
}
