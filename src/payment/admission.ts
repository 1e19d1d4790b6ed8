import { TooMany, Unavailable } from '../errors.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Failures } from './failures.ts';
import type { Ledger } from './ledger.ts';
import type { Order } from './order.ts';
import type { Asker, Look } from './rail.ts';
import { PaymentRefused, replyStoreFull } from './refusal.ts';

interface AdmissionOptions {
  ledger: Pick<Ledger, 'hasRoom' | 'hasSettled'>;
  failures: Failures;
}

/** Who is let in to the reservation: the parts of a purchase that cost little, before anything is written. */
export function createAdmission({ ledger, failures }: AdmissionOptions) {
  /** Throws Unavailable, `reply_store_full`, where no reply could be kept. */
  function checkRoom(): void {
    if (!ledger.hasRoom()) throw replyStoreFull();
  }

  return {
    checkRoom,

    /** The client that presents an order, as limits see it now. */
    asker: <S>({ client }: Order<S>, signal: AbortSignal): Asker => ({
      ...{ client, signal, hasFailed: failures.hasFailed(client) },
    }),

    /** Throws TooMany where the payer or the client must wait, Unavailable where nothing can be settled or kept now. */
    async checkCapacity<S>({ authorization: { from }, rail: { settler }, client, key }: Order<S>): Promise<void> {
      const refusal = failures.refusal(bytesToHex(from), client);
      if (refusal) throw new TooMany(refusal.code, refusal.detail, refusal.retryAfterSeconds);
      const reason = settler.refuses?.(from);
      if (reason) throw new TooMany('payer_refused', `payments of this payer are not taken for now: ${reason}`, 3600);
      const shortage = settler.unavailable();
      if (shortage) throw new Unavailable('settlement_unavailable', `payments cannot be settled now: ${shortage}`);
      checkRoom();
      const waitSeconds = failures.newPayersAfterSeconds(client);
      if (waitSeconds > 0 && !(await ledger.hasSettled(key))) {
        const detail =
          'settlements for this client have failed; only payers that have paid before are taken from it for now';
        throw new TooMany('client_refused', detail, waitSeconds);
      }
    },

    /** The signature, then the payer itself; throws what the rail throws. A payer that did not sign or cannot pay counts as a failure. */
    async lookAtPayer<S>({ authorization, rail }: Order<S>, isAgain: boolean, asker: Asker): Promise<Look> {
      const signed = await rail.checkSignature(authorization, asker).catch((error) => {
        // Contracts that are not asked for now count too: looking for their code has cost a read.
        if (error instanceof PaymentRefused || error instanceof TooMany) failures.noteUnproven(asker.client);
        throw error;
      });
      return rail.look(authorization, asker, { signed, isAgain }).catch((error) => {
        if (error instanceof PaymentRefused) failures.note(bytesToHex(authorization.from), asker.client);
        throw error;
      });
    },
  };
}

/**
 * Whether a failure before the intent is stored counts against the buyer: a refused payment does, and so does a failed call of a verified payment.
 * Our own shortage does not.
 */
export function isBuyersDoing(error: unknown, isVerified: boolean): boolean {
  if (error instanceof PaymentRefused) return true;
  return isVerified && !(error instanceof Unavailable);
}
