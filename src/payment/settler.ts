import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Payment, PaymentKey } from '../store/ports/sales.ts';

/**
 * The only failure after which the authorization can still be used. Our transaction was mined and moved nothing, or none was sent: a simulation
 * failed, the payer is banned, or the facilitator refused.
 */
export const REVERTED = 'invalid_exact_evm_transaction_failed';

/**
 * Our own code: the authorization buys nothing here for this presenter. It paid for another request or in another ledger, has other content, or its
 * buyer is not recognised.
 */
export const ALREADY_USED = 'payment_already_used';

/** x402's code: the evidence shows that the authorization's nonce was used for another transfer, or was cancelled. */
export const NONCE_USED = 'invalid_exact_evm_nonce_already_used';

/** x402's code: the authorization was not used and its time is over. */
export const EXPIRED = 'invalid_exact_evm_payload_authorization_valid_before';

/** The stored authorization of a served call that is not paid yet. */
export interface Intent {
  readonly id: string;
  readonly authorization: Authorization;
  /** The call that uses the authorization. Null for the token's own transfer. The evidence is the authorization's, either way. */
  readonly call: ContractCall | null;
  /** Block at which a search for the authorization's use starts. It was unused up to there. */
  readonly fromBlock: number;
  /** Whether a transaction with the authorization may have been sent to a node before. */
  readonly broadcast: boolean;
  /** Whether code stood at the payer's address when the payment was verified. */
  readonly hasCode: boolean;
  /** The rail that its cost counts for. `SettlingTerms.relaying` sets it. */
  readonly rail?: string;
}

/**
 * How a settlement ended. `failed`: nothing that we do can take the buyer's money any more. A transaction was mined without the transfer, or the
 * authorization was cancelled, was used elsewhere, or has expired. Every other end is `unknown`.
 */
export type Outcome =
  | {
      readonly kind: 'settled';
      readonly transaction: Uint8Array;
      readonly block: number;
      /** The amount that the evidence shows, in USDC base units. */
      readonly paid: bigint;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'unknown' };

/** What the evidence says about an authorization: its end, `open` while it can still be used, or `unknown` while the evidence cannot be read. */
export type Found = Outcome | { readonly kind: 'open' };

/** Why the evidence is read: a buyer waits (`settle`); or reconciliation asks, or the row was looked up in vain before (`collect`). */
export type LookupRank = 'settle' | 'collect';

/** A rail's evidence and settler. The core needs no more of a rail once a call has been served. */
export interface SettlingRail {
  readonly settler: Settler;
  /** `rank` is the rank of the requests that a lookup sends. */
  readonly evidence: {
    lookup(authorization: Authorization, fromBlock: number, options: { readonly rank: LookupRank }): Promise<Found>;
  };
  /**
   * Whether only payments that this ledger handed over count as paid. Other ledgers may sell to the same recipient, and the evidence shows their
   * payments too.
   */
  readonly ownOnly: boolean;
  /** Absent where the chain shows nothing of the rail's payments. */
  readonly books?: RailBooks;
}

/**
 * What the chain shows of something that the ledger has. `missing`: what it lacks. `surplus`: what it has beyond.
 * Amounts in USDC base units.
 */
export type BookVerdict =
  | { readonly kind: 'shown' }
  | { readonly kind: 'missing' | 'surplus'; readonly amount: bigint; readonly detail: string }
  | { readonly kind: 'unread'; readonly detail: string };

/**
 * Compares what the ledger has of one rail with the chain. `head` is a block that the chain has reached. What cannot be
 * read now is `unread`. The methods reject only when the ledger cannot be read.
 */
export interface RailBooks {
  /** One verdict for each of these settled rows, in their order. No two rows share what the chain shows. */
  compare(rows: readonly Payment[], head: number): Promise<readonly BookVerdict[]>;
  /**
   * Verdicts about what the rail keeps beside its rows, by names with a colon, which no payment's id has. The span is
   * in Unix milliseconds, `to` exclusive. `again`: the names that an earlier round left open.
   */
  compareRest?(
    span: { readonly from: number; readonly to: number },
    again: ReadonlySet<string>,
    head: number,
  ): Promise<ReadonlyMap<string, BookVerdict>>;
}

/** The result of the last probe of a rail's remote service. `/readyz` shows it. */
export interface RailProbe {
  readonly ok: boolean;
  readonly detail?: string;
  /** The address that sends the service's settlements, in lower case, where the service names one. */
  readonly sender?: `0x${string}`;
}

/** A rail's settlement in the process that settles. The optional members maintain it. */
export interface RailSettling extends SettlingRail {
  /** Reads what the settler must know before the first payment. */
  load?(): Promise<void>;
  /** One round of maintenance. Rejects when the round failed. */
  refresh?(): Promise<void>;
  /** A note for the operator although the rail works; null without one. */
  detail?(): string | null;
  /** Asks the rail's remote service whether it settles what is sold here. Never rejects. */
  probe?(): Promise<RailProbe>;
}

/** The terms under which a process settles. */
export interface SettlingTerms {
  /** Writes the transactions to disk before anything is sent. Returns the ids that still await settlement. The others must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  /** The fencing token of this process's lease; undefined where only one process can settle. */
  readonly fencingToken?: number | undefined;
  /**
   * Returns our relayer, which all rails share. The first call opens it. What this handle sends counts as the cost of `rail`, its name. Throws when no
   * relayer is configured.
   */
  relaying(rail: string): Relaying;
}

/** A payer's address in hex, and why it is not settled for. */
export type RefusedPayer = readonly [payer: string, reason: string];

/**
 * The port to what moves the money: our own relayer, or the remote service of a third party. `settle` returns one promise of an outcome for each
 * intent, in order. The promises never reject. Settling the same authorization twice is safe: its nonce moves money once.
 */
export interface Settler {
  settle(intents: readonly Intent[]): readonly Promise<Outcome>[];
  /** Why nothing can be settled now, or null. The core asks before a handler runs. */
  unavailable(): string | null;
  /**
   * Why nothing can be sent now, or null. A used-up budget stops new sales and is in `unavailable` alone: what is owed
   * already is still sent. Absent: as `unavailable`.
   */
  cannotSend?(): string | null;
  /** Why this payer's payments are refused now, or null. The core asks before a handler runs. */
  refuses?(payer: Uint8Array): string | null;
  /** Every payer that `refuses` has a reason against now. They are reported to the other processes that sell. */
  refused?(): readonly RefusedPayer[];
  /** Why payments of accounts with code are refused now, or null. Asked when a read shows that the payer has code. */
  refusesCode?(): string | null;
  /** Stops the work. Open intents resolve as unknown. */
  stop(): Promise<void>;
}

/**
 * Our own relayer in the process that settles: one key and one sequence of nonces. All rails share it. `load`, `refresh` and `detail` are those of a
 * rail's settlement; the part that opened the relayer calls them, and stops its settler.
 */
export interface Relaying {
  readonly settler: Settler;
  /** Carries out an operation, alone in its transaction. The promise never rejects. A relayer that is stopping returns `unknown`. */
  operate(operation: Operation): Promise<OperationOutcome>;
  load(): Promise<void>;
  refresh(): Promise<void>;
  detail(): string | null;
}

/** A call of a contract. `to` has 20 bytes. */
export interface ContractCall {
  readonly to: Uint8Array;
  readonly data: Uint8Array;
}

/** A mined transaction, as far as an operation is judged by it. */
export interface MinedTransaction {
  readonly transactionHash: string;
  readonly blockNumber: string;
  /** `0x1` when the transaction did not revert. Then its logs still decide. */
  readonly status: string;
  /** In units of gas and in wei a unit, as JSON-RPC quantities. Some nodes leave the price out. */
  readonly gasUsed?: string;
  readonly effectiveGasPrice?: string | undefined;
  readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
}

/** An operation's end as its event shows it. `amount`: what the event says, in base units of the token. */
export interface OperationDone {
  readonly kind: 'done';
  readonly transaction: Uint8Array;
  readonly block: number;
  readonly amount: bigint;
}

/** The end of an operation that did not do what it was sent for. `reason` is for the ledger and the log. */
export interface OperationFailed {
  readonly kind: 'failed';
  readonly reason: string;
}

/**
 * How an operation ended. `failed`: a simulation refused it, or a transaction with it was mined without its event, and no transaction of ours with it
 * can still be mined; or the chain shows that it can never be carried out. Every other end is `unknown`.
 */
export type OperationOutcome = OperationDone | OperationFailed | { readonly kind: 'unknown' };

/**
 * A call of ours that is no payment: a claim, a sweep or a refund of payment channels. The contract carries it out once. A second transaction with it
 * moves nothing more, but its gas is spent. So the chain is asked before an operation that a node may have seen is sent again.
 */
export interface Operation extends ContractCall {
  /** The rail that its cost counts for. `SettlingTerms.relaying` sets it. */
  readonly rail?: string;
  /** Unique, also among the ids of payments. */
  readonly id: string;
  /** The gas limit of its transaction. */
  readonly gas: bigint;
  /**
   * The block that its simulation must not be older than, because it was decided on what stood there. It is simulated
   * at that block or the agreed head, whichever is later. Without it at the newest block of the node that is asked.
   */
  readonly leastBlock?: number;
  /** Whether a transaction with it may have been sent to a node before. */
  readonly broadcast: boolean;
  /** Returns the end that this transaction shows; null when it does not show one. It must not throw. */
  readReceipt(receipt: MinedTransaction): OperationDone | null;
  /**
   * Returns the end that the chain shows, also by a third party's transaction. `failed`: no transaction can carry the operation out any more. Null
   * when the chain shows no end. Rejects when the chain cannot be read.
   */
  lookUp(signal: AbortSignal): Promise<OperationDone | OperationFailed | null>;
  /** Writes the transaction to disk before it is sent. False when the operation no longer awaits its end and must not be sent. */
  note(transaction: Uint8Array): Promise<boolean>;
}

/** An EIP-3009 authorization as bytes and numbers: amounts in USDC base units, times in Unix seconds. */
export interface Authorization {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Uint8Array;
  readonly signature: Uint8Array;
  /**
   * The contract to which the recipient passes the money on in the same transaction, where the payment is a call of that contract. The authorization's
   * fields can be signed for a plain transfer too, which any third party may send. That leaves the money with the recipient and pays nobody.
   */
  readonly passedTo?: Uint8Array;
}

/** The ledger's key of an authorization. */
export function paymentKey(authorization: Authorization, network: string, contract: Uint8Array): PaymentKey {
  return { network, contract, payer: authorization.from, nonce: authorization.nonce };
}

/**
 * Marks a row in the ledger whose transaction a third party will make. It is noted before an authorization is handed to that party. From then on the
 * party can take the money, even if this process fails.
 */
export const HANDED_OVER = Uint8Array.of(0);

const HASH_BYTES = 32;
const TRANSFER_BYTES = 16;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The bytes of a Gateway transfer's id (a UUID); null for any other text. */
export function transferIdBytes(text: string): Uint8Array | null {
  return UUID.test(text) ? hexToBytes(`0x${text.replaceAll('-', '')}`) : null;
}

/** Whether a ledger row's transaction is a Gateway transfer's id. */
export function isTransferId(bytes: Uint8Array | null): bytes is Uint8Array {
  return bytes?.length === TRANSFER_BYTES;
}

/** A ledger row's transaction as buyers see it: a transaction hash or a Gateway transfer's id. Null while there is neither. */
export function transactionText(bytes: Uint8Array | null): string | null {
  if (bytes?.length === HASH_BYTES) return bytesToHex(bytes);
  if (!isTransferId(bytes)) return null;
  return bytesToHex(bytes)
    .slice(2)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
