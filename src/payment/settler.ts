import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { Payment, PaymentKey } from '../store/ports/payments.ts';

// The port to what moves the money, and the core's words for it. What is not certain is `unknown`. Our relayer also
// carries out operations that are no payments.

/** The only failure after which an authorization can be used again: our transaction moved nothing, or was not sent. */
export const REVERTED = 'invalid_exact_evm_transaction_failed';

/** The authorization buys nothing here for this presenter: other request, ledger, content, or an unrecognised buyer. */
export const ALREADY_USED = 'payment_already_used';

/** x402's code: the nonce was used for another transfer, or was cancelled. */
export const NONCE_USED = 'invalid_exact_evm_nonce_already_used';

/** x402's code: the authorization was not used and its time is over. */
export const EXPIRED = 'invalid_exact_evm_payload_authorization_valid_before';

/** The stored authorization of a served call that is not paid yet. */
export interface Intent {
  readonly id: string;
  readonly authorization: Authorization;
  /** The call that uses the authorization; null for the token's own transfer. The evidence is the authorization's. */
  readonly call: ContractCall | null;
  /** Block at which a search for the authorization's use starts. It was unused up to there. */
  readonly fromBlock: number;
  /** Whether a transaction with the authorization may have been sent to a node before. */
  readonly broadcast: boolean;
  /** Whether code stood at the payer's address when the payment was verified. */
  readonly hasCode: boolean;
  readonly rail?: string;
}

/** `failed`: nothing that we do can take the money any more (REVERTED, cancelled, used elsewhere, or expired). */
export type Outcome =
  | {
      readonly kind: 'settled';
      readonly transaction: Uint8Array;
      readonly block: number;
      /** In USDC base units, as the evidence shows it. */
      readonly paid: bigint;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'unknown' };

/** An authorization's end; `open` while it can still be used, `unknown` while it is unread. */
export type Found = Outcome | { readonly kind: 'open' };

/** Why it is read: `settle`: a buyer waits; `collect`: reconciliation asks, or the row was looked up in vain before. */
export type LookupRank = 'settle' | 'collect';

/** What the chain lacks of what the ledger has (`missing`), or has beyond it (`surplus`), in USDC base units. */
export type BookVerdict =
  | { readonly kind: 'shown' }
  | { readonly kind: 'missing' | 'surplus'; readonly amount: bigint; readonly detail: string }
  | { readonly kind: 'unread'; readonly detail: string };

/** Compares a rail's books with the chain, which has reached `head`. Rejects only when the ledger cannot be read. */
export interface RailBooks {
  /** One verdict for each of these settled rows, in order. No two rows share what the chain shows. */
  compare(rows: readonly Payment[], head: number): Promise<readonly BookVerdict[]>;
  /** What lies beside its rows, by names with a colon. Unix milliseconds, `to` exclusive. `again`: names left open. */
  compareRest?(
    span: { readonly from: number; readonly to: number },
    again: ReadonlySet<string>,
    head: number,
  ): Promise<ReadonlyMap<string, BookVerdict>>;
}

export interface RailProbe {
  readonly ok: boolean;
  readonly detail?: string;
  /** The address, in lower case, that sends the service's settlements, where the service names one. */
  readonly sender?: `0x${string}`;
}

export type RefusedPayer = readonly [payer: string, reason: string];

/** What a sale asks of a rail's settler, in this process or another. Answered from memory. */
export interface SettlerStatus {
  /** Why nothing can be settled now, or null. Asked before a handler runs, like `refuses`. */
  unavailable(): string | null;
  /** Why nothing can be sent. A used-up budget is in `unavailable` alone: what is owed already is still sent. */
  cannotSend(): string | null;
  refuses(payer: Uint8Array): string | null;
  /** Why payments of accounts with code are refused now, or null. Asked when a read shows code. */
  refusesCode(): string | null;
  /** Why no sale begins though the settler works: no two providers agree, or money is missing. In `unavailable` too. */
  stopsSales?(): string | null;
}

/** What moves the money of one rail, in the process that settles. Without `cannotSend`, `unavailable` says both. */
export interface Settler
  extends Pick<SettlerStatus, 'unavailable'>,
    Partial<Pick<SettlerStatus, 'cannotSend' | 'refuses' | 'refusesCode'>> {
  /** One promise an intent, in order; none rejects. Settling twice is safe: a nonce moves money once. */
  settle(intents: readonly Intent[]): readonly Promise<Outcome>[];
  /** What the evidence says of an authorization, unused up to `fromBlock`. Rejects when it cannot be read. */
  lookup(authorization: Authorization, fromBlock: number, options: { readonly rank: LookupRank }): Promise<Found>;
  /** Whether only what this ledger handed over counts as paid, because other ledgers may sell to the same recipient. */
  readonly ownOnly: boolean;
  /** Every payer that `refuses` has a reason against now, for the other processes that sell. */
  refused?(): readonly RefusedPayer[];
  load?(): Promise<void>;
  refresh?(): Promise<void>;
  /** A note for the operator although the rail works; null without one. */
  detail?(): string | null;
  /** Asks the rail's remote service whether it settles what is sold here. Never rejects. */
  probe?(): Promise<RailProbe>;
  /** Absent where the chain shows nothing of the rail's payments. */
  readonly books?: RailBooks;
  /** Stops the work. Open intents resolve as unknown. */
  stop(): Promise<void>;
}

/** Our relayer: one key and one sequence of nonces for all rails. The part that opened it maintains and stops it. */
export interface Relayer extends Omit<SettlerStatus, 'stopsSales'>, Required<Pick<Settler, 'settle' | 'refused'>> {
  /** Carries out an operation, alone in its transaction. Never rejects; `unknown` while the relayer stops. */
  operate(operation: Operation): Promise<OperationOutcome>;
}

export interface SettlerContext {
  /** Writes transactions to disk before they are sent. Those whose ids it does not return must not be sent. */
  noteBroadcast(entries: { id: string; transaction: Uint8Array }[]): Promise<ReadonlySet<string>>;
  readonly fencingToken?: number | undefined;
  /** Our relayer, which all rails share; the first call opens it. Its cost counts for `rail`. Throws without one. */
  relayer(rail: string): Relayer;
}

/** `to` has 20 bytes. */
export interface ContractCall {
  readonly to: Uint8Array;
  readonly data: Uint8Array;
}

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

/** In base units of the token. */
export interface OperationDone {
  readonly kind: 'done';
  readonly transaction: Uint8Array;
  readonly block: number;
  readonly amount: bigint;
}

export interface OperationFailed {
  readonly kind: 'failed';
  readonly reason: string;
}

/** `failed`: refused by a simulation, mined without its event while no other can be mined, or impossible for good. */
export type OperationOutcome = OperationDone | OperationFailed | { readonly kind: 'unknown' };

/** A claim, sweep or refund of channels. A second transaction only spends gas: the chain is asked before a resend. */
export interface Operation extends ContractCall {
  readonly rail?: string;
  /** Unique, also among the ids of payments. */
  readonly id: string;
  readonly gas: bigint;
  /** Decided on this block. Simulated there or at the later agreed head; without it at the node's newest block. */
  readonly leastBlock?: number;
  readonly broadcast: boolean;
  /** The end that this transaction shows, or null. It must not throw. */
  readReceipt(receipt: MinedTransaction): OperationDone | null;
  /** The end that the chain shows, or null. `failed`: for good. Rejects when the chain cannot be read. */
  lookUp(signal: AbortSignal): Promise<OperationDone | OperationFailed | null>;
  /** Writes the transaction to disk before it is sent. False: it awaits no end any more and must not be sent. */
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
  /** The contract that gets the money in the same transaction. The same fields sent as a plain transfer pay nobody. */
  readonly passedTo?: Uint8Array;
}

export function paymentKey(authorization: Authorization, network: string, contract: Uint8Array): PaymentKey {
  return { network, contract, payer: authorization.from, nonce: authorization.nonce };
}

/** Marks a row before its authorization goes to a third party, which can then take the money even if we fail. */
export const HANDED_OVER = Uint8Array.of(0);

const HASH_BYTES = 32;
const TRANSFER_BYTES = 16;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The bytes of a Gateway transfer's id (a UUID), or null. */
export function transferIdBytes(text: string): Uint8Array | null {
  return UUID.test(text) ? hexToBytes(`0x${text.replaceAll('-', '')}`) : null;
}

export function isTransferId(bytes: Uint8Array | null): bytes is Uint8Array {
  return bytes?.length === TRANSFER_BYTES;
}

/** A row's transaction as buyers see it: a transaction hash or a Gateway transfer's id. Null while there is neither. */
export function transactionText(bytes: Uint8Array | null): string | null {
  if (bytes?.length === HASH_BYTES) return bytesToHex(bytes);
  if (!isTransferId(bytes)) return null;
  return bytesToHex(bytes)
    .slice(2)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
