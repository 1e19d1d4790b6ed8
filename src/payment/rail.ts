import type { PaymentRequirements } from '@x402/core/types';
import type { RailsConfig } from '../config/payment.ts';
import type { Config } from '../config.ts';
import type { ChannelCharge } from '../store/ports/channel-state.ts';
import type { Payment } from '../store/ports/payments.ts';
import type { Accepted, Credential, ProtocolName, Receipt } from './protocol.ts';
import type { Delivery } from './receipt.ts';
import type { PaymentRefused, RefusalSentences } from './refusal.ts';
import type { Authorization, ContractCall, Found, RailSettling, Settler, SettlerContext } from './settler.ts';

// The port between rails and the core. A rail knows how money moves and what proves it; it knows no protocol and no
// HTTP. What settles stands in settler.ts.

/** A rail's name in the reports of the process that settles. The names of all rails in a list differ. */
export type RailName = string;

/** What is known of a rail before it is opened. Every member is pure. */
export interface RailInfo {
  readonly name: RailName;
  isOn(rails: RailsConfig): boolean;
  /** The contract that its payers sign for. A row names its rail by it, also where it is off. Null: not configured. */
  contract(config: Config): `0x${string}` | null;
  /** Whether its payments take from the payer's own balance of the token, and so share it. By default they do not. */
  readonly takesFromBalance?: boolean;
  /** Makes this rail's entry in a 402 from the plain one. Called only where the rail is on. */
  entry(plain: PaymentRequirements, rails: RailsConfig): PaymentRequirements;
  /** Whether a 402 lists this rail for a route of this price, in USDC base units. By default for each route. */
  sells?(price: bigint, rails: RailsConfig): boolean;
  /** Gas that the seller pays for a call, where nothing better is known. By default none: a service of others pays. */
  gasOfCall?(rails: RailsConfig): bigint;
  /** Whether a 402 lists this rail only after a probe of its service has succeeded. By default it lists it always. */
  readonly isOfferedOnceProven?: boolean;
  readonly refusals?: RefusalSentences;
  /** The remote service that settles for it; null where our relayer does. */
  service(rails: RailsConfig): RailService | null;
}

interface RailService {
  readonly name: string;
  /** Whether a failed probe makes `/readyz` fail. The fault of any other service is only shown there. */
  readonly isVital: boolean;
}

export interface OpenRail {
  readonly info: RailInfo;
  /** Whether a payment's `accepted` names this rail. A payment that no rail recognises is checked by the first rail. */
  recognises(accepted: Accepted): boolean;
  readonly purchase: PurchaseRail;
  /** Opens settlement by this process: once, or once per lease. Throws when the rail's configuration cannot work. */
  openSettling(context: SettlerContext): RailSettling;
}

export interface Asker {
  /** The client's key in the limits. Clients take turns at reads that cost requests. */
  readonly client: string;
  /** Whether a call of this client or its IPv6 /48 failed uncharged in this minute. Then others' reads come first. */
  readonly hasFailed: boolean;
  readonly signal: AbortSignal;
}

/** What is known of a payer, from the chain or from a service that keeps its balance. */
export interface PayerReading {
  readonly used: boolean;
  /** The balance that the payer can pay from, in USDC base units. */
  readonly balance: bigint;
  readonly hasCode: boolean;
  /** Where to search for the use: 1,200 blocks below the read, because providers differ in height. 0: no chain read. */
  readonly block: number;
}

interface ReadPayerTerms {
  /** What the signature check read of the payer. */
  readonly signed: PayerReading | null;
  /** Whether the authorization reverted here before, and was found unused a moment ago. */
  readonly isAgain: boolean;
  /** What the call costs, in USDC base units. */
  readonly price: bigint;
}

export interface Verified {
  readonly checkedBlock: number;
  readonly hasCode: boolean;
  /** Called when nothing was sent for the reservation. It is released by then, or reconciliation releases it. */
  nothingSent?(): void;
}

interface VerifyTerms {
  readonly asker: Asker;
  readonly isAgain: boolean;
  readonly price: bigint;
}

interface ReviewTerms {
  readonly asker: Asker;
  mayLookUp(): boolean;
}

/** A decoded payment that is settled after the call is served. */
export interface SignedPayment {
  readonly kind: 'signed';
  readonly authorization: Authorization;
  /** SHA-256 over the contract, the fields and the signature. */
  readonly authorizationHash: Uint8Array;
  /** The voucher that the sale charges, where the payment is a deposit into a channel. */
  readonly channel?: ChannelCharge;
  /** The call that settles the payment, where it is another one than the token's transfer. */
  readonly call?: ContractCall;
}

/** A decoded payment that needs no settlement. Its rail grants the answer and delivers it. */
export interface PaidProof {
  readonly kind: 'paid';
  /** 20 bytes: the account that signed the proof. The limits count by it. */
  readonly signer: Uint8Array;
  /** Throws PaymentRefused when the proof buys nothing here. */
  redeem(order: PaidOrder): Promise<Delivery>;
}

/** What may show that a client is the buyer of an earlier sale. */
export interface Presenter {
  readonly identity: string;
  readonly identifierHash: Uint8Array | null;
}

export interface PaidOrder extends Presenter {
  readonly accepted: Accepted;
  readonly requirement: PaymentRequirements;
  /** The route's listed path, such as `/v1/paid/chain/wallet`. */
  readonly route: string;
  readonly protocol: ProtocolName;
  readonly price: bigint;
  readonly requestHash: Uint8Array;
  readonly asker: Asker;
  /** Throws TooMany when the payer or the client must wait, Unavailable when the reply store is full. */
  admit(): void;
  run(): Promise<Uint8Array>;
}

/** A message that buys nothing: the rail carries it out and answers with a receipt. No endpoint runs. */
export interface PaymentCommand {
  readonly signer: Uint8Array;
  run(accepted: Accepted, requirement: PaymentRequirements, asker: Asker & Presenter): Promise<Delivery>;
}

/** One way to pay in USDC: what a purchase needs of it until the call is served. The settler does the rest. */
export interface PurchaseRail {
  /** The contract that the payer signed for. It is part of the ledger's key, so each row shows its rail. */
  readonly contract: Uint8Array;
  readonly status: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>;
  requirement(plain: PaymentRequirements): PaymentRequirements;
  /** Decodes the payload. Throws PaymentRefused for another kind of payment, and for one that cannot be decoded. */
  read(payload: Credential['payload']): SignedPayment | PaidProof;
  /** A payload that is a command; null for a payment. Read before the request's parameters: it runs no endpoint. */
  readCommand?(payload: Credential['payload']): PaymentCommand | null;
  /** Throws PaymentRefused when the terms that the buyer claims to accept are not this rail's. */
  checkAccepted(accepted: Accepted, requirement: PaymentRequirements): void;
  /** The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  check(payment: SignedPayment, requirement: PaymentRequirements, now: number): void;
  /** Null without a read. Throws PaymentRefused unless the payer signed, TooMany or Unavailable if that is unclear. */
  checkSignature(payment: SignedPayment, asker: Asker): Promise<PayerReading | null>;
  /** Reads the evidence of a reverted authorization with row `known`; unknown where `mayLookUp` allows no request. */
  review(payment: SignedPayment, known: Payment, terms: ReviewTerms): Promise<Found>;
  /** Reads the payer, together with others. Throws PaymentRefused when it cannot pay for this one authorization. */
  readPayer(payment: SignedPayment, asker: Asker, terms: ReadPayerTerms): Promise<PayerReading>;
  /** Why a payment without a row cannot be reserved; null without a reason of this rail's own. */
  whyNotReserved?(payment: SignedPayment): Promise<PaymentRefused | null>;
  /** Of what others sent: throws PaymentRefused unless it pays the price. By default the amount must equal it. */
  checkPaid?(payment: SignedPayment, price: bigint, asker: Asker): Promise<void>;
  /** The refusal of a payment that has been used for another request. By default the reason alone. */
  refuseUsed?(payment: SignedPayment, known: Payment): Promise<PaymentRefused>;
  /** This rail's name of the reason for which a settlement failed. By default the row's own. */
  reasonOf?(reason: string): string;
  /** The receipt of a delivered payment. By default the transaction and the amount. */
  receipt?(payment: Payment): Receipt;
  /** The last checks before the handler. Throws PaymentRefused unless it can be settled beside earlier open ones. */
  verify(id: string, payment: SignedPayment, seen: PayerReading, terms: VerifyTerms): Promise<Verified>;
}

export type RailFor = (accepted: Accepted) => PurchaseRail;
