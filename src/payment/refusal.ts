import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { AppError, Unavailable, UpstreamFailed } from '../errors.ts';

// Every way to say no to a payment. A 402 says that this presentation took no money. `charged: "unknown"` says that
// money may have moved or still can; it is said wherever the ledger does not rule that out.

/** What the buyer must know to sign the next payment: `extra` is added to the offer's entry with this scheme. */
export interface Correction {
  readonly scheme: string;
  readonly extra: Readonly<Record<string, unknown>>;
  /** No failure: the buyer has paid for a call here before, and the refusal has cost no read of the chain. */
  readonly isForgiven: boolean;
}

/** x402's word for a payment whose terms no entry of the offer has. */
export const NOT_OFFERED = 'No matching payment requirements';

export function corrected(
  accepts: readonly PaymentRequirements[],
  { scheme, extra }: Correction,
): readonly PaymentRequirements[] {
  return accepts.map((entry) => (entry.scheme === scheme ? { ...entry, extra: { ...entry.extra, ...extra } } : entry));
}

interface RefusalOptions {
  settlement?: SettleResponse | null;
  correction?: Correction | null;
  detail?: string | undefined;
}

/**
 * 402: no money moved for this request. `reason`: x402's error code where it has one. `settlement`, for
 * PAYMENT-RESPONSE: one that was refused, or an earlier sale that the buyer missed. `correction`: the buyer's state is
 * old. `detail`: a sentence, where more is known.
 */
export class PaymentRefused extends Error {
  readonly reason: string;
  readonly settlement: SettleResponse | null;
  readonly correction: Correction | null;
  readonly detail: string | undefined;
  constructor(reason: string, { settlement = null, correction = null, detail }: RefusalOptions = {}) {
    super(reason);
    this.name = 'PaymentRefused';
    this.reason = reason;
    this.settlement = settlement;
    this.correction = correction;
    this.detail = detail;
  }

  /** This refusal, and the settlement's, with a scheme's own name of the reason. */
  renamed(reason: string): PaymentRefused {
    const settlement = this.settlement && { ...this.settlement, errorReason: reason };
    return new PaymentRefused(reason, { settlement, correction: this.correction, detail: this.detail });
  }
}

/**
 * Names a failure for counts: by its reason, else its code, else `internal`. A reason that is not `isOurs` is `other`:
 * a third party's own words might name a buyer on a public page, and would make a series or a row each.
 */
export function refusalName(error: unknown, isOurs: (reason: string) => boolean): string {
  if (error instanceof PaymentRefused) return isOurs(error.reason) ? error.reason : 'other';
  return error instanceof AppError ? error.code : 'internal';
}

export type RefusalWords = (refusal: Pick<PaymentRefused, 'reason' | 'detail'>) => string;

export type RefusalSentences = Readonly<Record<string, string>>;

/** Joins the sentences of all parts. A reason without one is a third party's own word, and is repeated. */
export function refusalWords(tables: readonly RefusalSentences[]): RefusalWords {
  const sentences = new Map(tables.flatMap((table) => Object.entries(table)));
  return ({ reason, detail }) => detail ?? sentences.get(reason) ?? `The payment was refused: ${reason}.`;
}

export function replyStoreFull(): Unavailable {
  return new Unavailable('reply_store_full', 'There is no space to keep another reply; try again later.', 30);
}

/** Reasons that belong to no scheme: this service's own, and x402's for a payment that cannot be read. */
export const OWN_REFUSALS: RefusalSentences = {
  payment_already_used:
    'This payment is already used: it was made for another request, or its answer is not given to this client ' +
    'again. If you paid for this very request, present the same payment again from the address that paid, or with ' +
    'its payment identifier. For another request, sign a new one.',
  invalid_payload:
    'The payment cannot be read. Send base64 of the JSON payment in PAYMENT-SIGNATURE, or in Authorization the ' +
    'credential that a line of WWW-Authenticate asks for; with a call of a tool, the JSON payment in ' +
    '_meta["x402/payment"].',
  invalid_x402_version: 'The payment has another version of x402. Send x402Version 2.',
  unsupported_payload_type:
    'The payload holds no authorization. Sign an EIP-3009 TransferWithAuthorization for the entry of accepts, ' +
    'or over MPP for the challenge.',
  unexpected_settle_error:
    'The settlement of this payment failed. Look the payment up by its nonce before you sign another.',
  invalid_challenge:
    'The answered challenge is not of this service, or not for this request. Answer the challenge of this 402.',
};

const AGAIN = '(whether this payment has moved money is open: present the same one again)';

/** Never the buyer's doing: it counts as no failure. */
export function settlementUnknown(cause?: unknown): Unavailable {
  const detail =
    'the outcome of this payment is not known yet; present the same payment again, it is never taken twice';
  return new Unavailable('settlement_unknown', detail, 2, { charged: 'unknown', cause });
}

/** Turns every failure into 503 `settlement_unknown`: once an intent is stored, none says whether money moved. */
export async function orSettlementUnknown<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (cause) {
    throw settlementUnknown(cause);
  }
}

/** Turns a source's failure into 503 `settlement_unavailable`: what a payment is checked against did not answer. */
export async function checkable<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof UpstreamFailed)) throw error;
    const detail = `payments cannot be checked now: ${error.message}`;
    throw new Unavailable('settlement_unavailable', detail, 5, { cause: error });
  }
}

/**
 * Turns `charged: false` into `charged: "unknown"`, for a payment that may move money elsewhere: a reverted
 * authorization may be public, a voucher charged, a write unanswered while another presentation is sold.
 */
export async function chargedUnknown<T>(serve: () => Promise<T>): Promise<T> {
  try {
    return await serve();
  } catch (error) {
    throw asChargedUnknown(error);
  }
}

/** A 402 stays: it says why this presentation was refused, not whether the authorization can still move money. */
export function asChargedUnknown(error: unknown): unknown {
  if (error instanceof AppError) return error.charged === false ? asUnknown(error) : error;
  if (error instanceof PaymentRefused) return error;
  const detail = `This is a fault of the service, logged under the request id ${AGAIN}`;
  return new AppError(500, 'internal', detail, { charged: 'unknown', cause: error });
}

function asUnknown(error: AppError): AppError {
  const { status, code, message, retryAfterSeconds, errors, headers, members, cause } = error;
  // A conflict says itself what to present.
  const detail = status === 409 ? message : `${message} ${AGAIN}`;
  // Stays one, because it never counts as the buyer's doing.
  if (error instanceof Unavailable)
    return new Unavailable(code, detail, retryAfterSeconds, { charged: 'unknown', cause });
  return new AppError(status, code, detail, {
    charged: 'unknown',
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(errors && { errors }),
    headers,
    members,
    cause,
  });
}
