import { TooMany, Unavailable } from '../errors.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment, PaymentKey } from '../store/ports/sales.ts';
import type { Failures } from './failures.ts';
import type { Ledger } from './ledger.ts';
import type { ReadSoon } from './ledger-timeout.ts';
import type { Order } from './order.ts';
import type { Asker, Look } from './rail.ts';
import { PaymentRefused, replyStoreFull } from './refusal.ts';
import type { UnknownPayments } from './unknown-payments.ts';

interface AdmissionOptions {
  ledger: Pick<Ledger, 'hasRoom' | 'hasSettled'>;
  failures: Failures;
  unknown: Pick<UnknownPayments, 'check'>;
  /** The ledger's row of this authorization. Rejects when it cannot be read in time. */
  find(key: PaymentKey): Promise<Payment | null>;
  soon: ReadSoon;
}

/** The limits and the payer checks of a purchase that run before the reservation. They write nothing. */
export function createAdmission({ ledger, failures, unknown, find, soon }: AdmissionOptions) {
  /** Throws Unavailable (`reply_store_full`) while the reply store is full. */
  function checkRoom(): void {
    if (!ledger.hasRoom()) throw replyStoreFull();
  }

  /** The client that presents an order, as the limits know it now. */
  const asker = ({ client }: Pick<Order<never>, 'client'>, signal: AbortSignal): Asker => ({
    ...{ client, signal, hasFailed: failures.hasFailed(client) },
  });

  /** Throws TooMany when the payer or the client has failed too often. */
  function checkFailures(payer: Uint8Array, client: string): void {
    const refusal = failures.refusal(bytesToHex(payer), client);
    if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
  }

  return {
    checkRoom,

    checkFailures,

    asker,

    /** The same for a payment that is known here and may have paid. Only the failures of this minute count. */
    askAgain<S>(order: Order<S>, signal: AbortSignal): Asker {
      const refusal = failures.refusalOfMinute(bytesToHex(order.authorization.from), order.client);
      if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
      return asker(order, signal);
    },

    /** Throws TooMany when the payer or the client must wait. Throws Unavailable when the rail cannot settle now or the reply store is full. */
    checkCapacity<S>({ authorization: { from }, rail: { status }, client }: Order<S>): void {
      checkFailures(from, client);
      const reason = status.refuses?.(from);
      if (reason) throw new TooMany('payer_refused', `payments of this payer are refused for now: ${reason}`, 3600);
      const shortage = status.unavailable();
      if (shortage) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${shortage}`);
      checkRoom();
    },

    lookAtPayer: createPayerLook({ ledger, failures, unknown, find, soon }),
  };
}

/** Checks what the ledger knows of a payer's and a client's earlier payments. */
function createEarlierCheck({ ledger, failures, unknown, soon }: AdmissionOptions) {
  /** Throws TooMany while too many earlier payments are unknown, or the client may pay only from payers that have paid before. */
  return async <S>({ authorization: { from }, client, key }: Order<S>): Promise<void> => {
    await unknown.check(bytesToHex(from), client);
    const waitSeconds = failures.newPayersAfterSeconds(client);
    if (waitSeconds <= 0 || (await soon(ledger.hasSettled(key)))) return;
    const detail =
      'settlements for this client have failed; only payers that have paid before are taken from it for now';
    throw new TooMany('client_refused', detail, waitSeconds);
  };
}

/** Looks at a payer, before anything is reserved for it. */
function createPayerLook(options: AdmissionOptions) {
  const { failures, find } = options;
  const checkEarlier = createEarlierCheck(options);

  /**
   * Checks what the ledger knows of earlier payments, then the signature, then reads the payer. Throws TooMany, 503 `ledger_unavailable`, and what the
   * rail throws. A signature that is not valid counts as a failure of the client. A payer that cannot pay counts as a failure of both.
   *
   * These reads may take seconds. Meanwhile another presentation of the same payment may have reserved it, and even settled it. Then the chain shows a
   * used authorization and a lower balance. That is no reason to refuse, so null is returned: the row decides.
   */
  return async <S>(order: Order<S>, isAgain: boolean, asker: Asker): Promise<Look | null> => {
    const { payment, rail, price, key } = order;
    let isAdmitted = false;
    let isSigned = false;
    try {
      await checkEarlier(order);
      isAdmitted = true;
      const signed = await rail.checkSignature(payment, asker);
      isSigned = true;
      return await rail.look(payment, asker, { signed, isAgain, price });
    } catch (error) {
      if (!isAgain && (await find(key))) return null;
      if (isAdmitted && !isSigned && hasCostARead(error)) failures.noteUnproven(asker.client);
      if (isSigned && isBuyersDoing(error, false)) failures.note(bytesToHex(payment.authorization.from), asker.client);
      throw error;
    }
  };
}

/**
 * Whether a signature that could not be proven counts as a failure of the client. A refusal of contracts counts too (TooMany, or Unavailable while
 * accounts with code are not settled): the contract was not called, but the read of the payer's code has cost a request.
 */
function hasCostARead(error: unknown): boolean {
  if (error instanceof Unavailable) return error.code === 'settlement_unavailable';
  return error instanceof PaymentRefused || error instanceof TooMany;
}

/**
 * Whether a failure before the intent is stored counts against the buyer. A refused payment counts. A failed call of a verified payment counts,
 * unless the service itself was short of something (Unavailable).
 */
export function isBuyersDoing(error: unknown, isVerified: boolean): boolean {
  // A buyer that knows an old state of its channel gets the new one, and has done nothing wrong.
  if (error instanceof PaymentRefused) return isVerified || !error.correction?.isForgiven;
  return isVerified && !(error instanceof Unavailable);
}
