import type { PaymentRequirements } from '@x402/core/types';
import { listedPath } from '../catalogue/paths.ts';
import { bytesToHex } from '../lib/hex.ts';
import { type createAdmission, isBuyersDoing } from './admission.ts';
import type { Failures } from './failures.ts';
import type { PaidRequest, Presentation } from './order.ts';
import { hashIdentifier } from './protocols/x402/http.ts';
import type { PaidProof, PaymentCommand } from './rail.ts';
import type { Delivery } from './receipt.ts';
import { NOT_OFFERED, PaymentRefused } from './refusal.ts';
import { runEndpoint } from './run-endpoint.ts';

interface DirectSaleOptions<S> {
  admission: ReturnType<typeof createAdmission>;
  failures: Failures;
  sources: S;
  handlerTimeoutMs: number;
}

/** Payments that need no settlement, and commands. Their rails do the work. The limits are the same as for every other payment. */
export function createDirectSale<S>({ admission, failures, sources, handlerTimeoutMs }: DirectSaleOptions<S>) {
  return {
    /** Sells for a proof. The rail grants the answer and delivers it. */
    redeem: (
      proof: PaidProof,
      request: PaidRequest<S>,
      requirement: PaymentRequirements,
      { credential, identity, signal }: Presentation,
    ): Promise<Delivery> => {
      const { endpoint, params, price, requestHash, identifierHash, client } = request;
      let isVerified = false;
      const sold = proof.redeem({
        ...{
          accepted: credential.accepted ?? requirement,
          requirement,
          route: listedPath(endpoint),
          price,
          requestHash,
          identifierHash,
          identity,
          protocol: credential.protocol,
        },
        asker: admission.asker(request, signal),
        admit: () => {
          if (endpoint.isOff) throw new PaymentRefused(NOT_OFFERED);
          admission.checkFailures(proof.signer, client);
          admission.checkRoom();
        },
        run: () => {
          isVerified = true;
          return runEndpoint(endpoint, params, { sources, timeoutMs: handlerTimeoutMs, signal });
        },
      });
      return sold.catch((error) => {
        if (!isBuyersDoing(error, isVerified)) throw error;
        // Until the endpoint runs, any client could have named this signer.
        if (isVerified) failures.note(bytesToHex(proof.signer), client);
        else failures.noteUnproven(client);
        throw error;
      });
    },

    /** Carries out a command. A refused command counts like a refused payment. Throws BadParameter for a malformed payment identifier. */
    carryOut: async (
      command: PaymentCommand,
      requirement: PaymentRequirements,
      { credential, client, identity, signal }: Presentation,
    ): Promise<Delivery> => {
      const identifierHash = hashIdentifier(credential.extensions);
      admission.checkFailures(command.signer, client);
      const accepted = credential.accepted ?? requirement;
      const asker = { ...admission.asker({ client }, signal), identity, identifierHash };
      return command.run(accepted, requirement, asker).catch((error) => {
        if (isBuyersDoing(error, false)) failures.noteUnproven(client);
        throw error;
      });
    },
  };
}
