import type { PaymentRequirements } from '@x402/core/types';
import type { Config } from '../config.ts';
import type { Log } from '../lib/common.ts';
import type { ChannelCharge } from '../store/ports/channel-state.ts';
import type { Payment, PaymentKey } from '../store/ports/payments.ts';
import type { RailStores } from '../store/ports/stores.ts';
import type { Call, Sold } from './call.ts';
import type { Accepted, Credential, Identifier, Receipt } from './protocol.ts';
import type { RefusalSentences } from './refusal.ts';
import type { Authorization, ContractCall, Found, Settler, SettlerContext } from './settler.ts';

// The port between rails and the core. A rail sells: it is given a call and a payment, and answers with what was sold.
// It knows how money moves and what proves it; it knows no protocol and no HTTP. A payment that is signed first is sold
// by `sellSigned` (sale.ts) with a rail's `SignedScheme`. What settles stands in settler.ts.

/** A rail's name in the reports of the process that settles. The names of all rails in a list differ. */
export type RailName = string;

/** What is known of a rail before it is opened. Every member but `checkLedger` is pure. */
export interface RailInfo {
  readonly name: RailName;
  isOn(rails: Config['rails']): boolean;
  /** The contract that its payers sign for. A row names its rail by it, also where it is off. Null: not configured. */
  contract(config: Config): `0x${string}` | null;
  /** Whether that is null while the rail is off. A row of a contract that no rail has now is then of this rail. */
  readonly isUnknownWhileOff?: boolean;
  /** The way to pay under which the status page counts what it took. */
  readonly way: string;
  /** Whether its payments take from the payer's own balance of the token, and so share it. By default they do not. */
  readonly takesFromBalance?: boolean;
  /** Whether its contract holds what its payments earned and pays it to the seller later. By default it does not. */
  readonly holdsEarnings?: boolean;
  /** What a buyer needs before a purchase, as our own listings say it. By default nothing, and a payment is direct. */
  readonly needs?: 'gateway' | 'channel';
  /** Prepares what makes this rail's requirement from the plain one. Called only where the rail is on. */
  requirement(rails: Config['rails']): MakeRequirement;
  /** Whether a 402 lists this rail for a route of this price, in USDC base units. By default for each route. */
  sells?(price: bigint, rails: Config['rails']): boolean;
  /** Gas that the seller pays for a call, where nothing better is known. By default none: a service of others pays. */
  gasOfCall?(rails: Config['rails']): bigint;
  /** Whether a 402 lists this rail only after a probe of its service has succeeded. By default it lists it always. */
  readonly isOfferedOnceProven?: boolean;
  readonly refusals?: RefusalSentences;
  /** Why the rail cannot use this configuration with what the ledger has; null where it can. It may warn. */
  checkLedger?(config: Config, stores: RailStores, log: Pick<Log, 'warn'>): Promise<string | null>;
  /** The remote service that settles for it; null where our relayer does. */
  service(rails: Config['rails']): RailService | null;
}

/** Makes a rail's requirement, its entry in a 402, from the plain one. */
export type MakeRequirement = (plain: PaymentRequirements) => PaymentRequirements;

interface RailService {
  readonly name: string;
  /** Whether a failed probe makes `/readyz` fail. The fault of any other service is only shown there. */
  readonly isVital: boolean;
}

/** One way to pay. `C`: a call as this rail needs it. */
export interface Rail<C extends Call> {
  /** Whether a payment's terms name this rail. The first rail checks a payment that none recognises. */
  recognises(accepted: Accepted): boolean;
  /** Throws PaymentRefused (402), BadParameter (400), or an AppError whose `charged` says what became of the money. */
  sell(call: C, credential: Credential): Promise<Sold>;
}

/** A call that is sold in USDC. */
export interface UsdcCall extends Call {
  /** The plain requirement, from which each rail makes its own. */
  readonly plain: PaymentRequirements;
}

/** A rail in USDC. Its payments are rows of the ledger. */
export interface UsdcRail extends Rail<UsdcCall> {
  readonly info: RailInfo;
  /** The contract that its payers sign for. It is part of the ledger's key, so each row shows its rail. */
  readonly contract: Uint8Array;
  /** Opens settlement by this process: once, or once per lease. Throws when the rail's configuration cannot work. */
  openSettler(context: SettlerContext): Settler;
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

export interface Verified {
  readonly checkedBlock: number;
  readonly hasCode: boolean;
  /** Called when nothing was sent for the reservation. It is released by then, or reconciliation releases it. */
  nothingSent?(): void;
}

/** A decoded payment that is signed before the call and settled after it. */
export interface SignedPayment {
  readonly authorization: Authorization;
  /** SHA-256 over the contract, the fields and the signature. */
  readonly authorizationHash: Uint8Array;
  /** The voucher that the sale charges, where the payment is a deposit into a channel. */
  readonly channel?: ChannelCharge;
  /** The call that settles the payment, where it is another one than the token's transfer. */
  readonly contractCall?: ContractCall;
}

/** A signed payment on its way through the steps of STEPS.md. The steps fill the last three members. */
export interface Sale<P extends SignedPayment = SignedPayment> {
  readonly scheme: SignedScheme<P>;
  readonly call: UsdcCall;
  readonly credential: Credential;
  /** The rail's, which the payment must meet. */
  readonly requirement: PaymentRequirements;
  readonly payment: P;
  readonly key: PaymentKey;
  readonly requestHash: Uint8Array;
  readonly clientHash: Uint8Array;
  readonly identifier: Identifier | null;
  readonly asker: Asker;
  /** 3. The ledger's row, where the authorization reverted before and may be sold again. */
  reverted: Payment | null;
  /** 7. The reservation's id. */
  id: string;
  /** 10. The reply. */
  body: Uint8Array;
}

/** What `sellSigned` asks of a payment that is signed before the call. The numbers are the steps of STEPS.md. */
export interface SignedScheme<P extends SignedPayment = SignedPayment> {
  readonly contract: Uint8Array;
  readonly status: Required<Pick<Settler, 'unavailable' | 'refuses'>>;
  /** The one of `RailInfo`, prepared. */
  readonly requirement: MakeRequirement;
  /** 2. Throws PaymentRefused for another kind of payment, and for one that cannot be decoded. */
  read(payload: Credential['payload']): P;
  /** 4. Throws PaymentRefused when the terms that the buyer claims to accept are not this rail's. */
  checkAccepted(accepted: Accepted, requirement: PaymentRequirements): void;
  /** 4. The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  check(payment: P, requirement: PaymentRequirements, now: number): void;
  /** 5. Null without a read. Throws PaymentRefused unless the payer signed; TooMany, Unavailable if that is unclear. */
  checkSignature(sale: Sale<P>): Promise<PayerReading | null>;
  /** 6. Reads the payer, together with others. Throws PaymentRefused when it cannot pay for this one authorization. */
  readPayer(sale: Sale<P>, signed: PayerReading | null): Promise<PayerReading>;
  /** 8. Throws PaymentRefused unless it can be settled beside the payer's earlier open payments. */
  verify(sale: Sale<P>, payer: PayerReading): Promise<Verified>;
  /** 3. What the evidence says of a reverted authorization with this row. It is looked up only where `mayLookUp`. */
  review(sale: Sale<P>, reverted: Payment, mayLookUp: () => boolean): Promise<Found>;
  /** 8, where others have sent it: throws PaymentRefused unless it pays the price. By default its amount must. */
  checkPaid?(sale: Sale<P>): Promise<void>;
  /** The receipt of a delivered payment. */
  receipt(payment: Payment): Receipt;
}
