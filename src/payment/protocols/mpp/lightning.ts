import type { ChallengeSecrets } from '../../challenge-secrets.ts';
import type { Credential, Fields, PaymentScheme, QuotedInvoice } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import { challengeLine, encodeCanonical, INTENT, isOurChallenge, withId, writeTime } from './challenge.ts';
import { readCredential } from './credential.ts';
import { receiptFields } from './receipt.ts';

const METHOD = 'lightning';
const MSAT_PER_SAT = 1000n;
/** The method's names of the networks, by the currency that follows `ln` in their invoices. A longer currency stands before its own beginning. */
export const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' };

/**
 * The `Payment` scheme's method `lightning`, intent `charge`. The challenge repeats the invoice, and the node has signed the request's hash into it. So
 * a challenge buys one answer to one request, without any state of this protocol.
 */
export function createMppLightning(secrets: ChallengeSecrets, realm: string): PaymentScheme {
  return {
    protocol: 'mpp',
    names: ['payment'],
    read: (authorization): Credential => {
      const { challenge, payload, request } = readCredential(authorization, METHOD);
      if (!isOurChallenge(secrets, challenge)) throw new PaymentRefused('invalid_challenge');
      const { invoice } = (request.methodDetails ?? {}) as { invoice?: unknown };
      // The challenge's own expiry does not matter: the rail judges the invoice's times, and a claimed proof stays good.
      return {
        ...{ protocol: 'mpp', accepted: null, challengeId: challenge.id },
        payload: { invoice, preimage: lowerCase(payload.preimage) },
      };
    },
    challenge: (invoice): string =>
      challengeLine(
        withId(secrets.current, {
          ...{ realm, method: METHOD, intent: INTENT, request: encodeCanonical(requestFor(invoice)) },
          expires: writeTime(invoice.expiresAt),
        }),
      ),
    receipt: (paid): Fields => receiptFields(METHOD, paid),
  };
}

/** Some clients write hexadecimal digits in upper case. A buyer who has paid must not be refused for that. */
const lowerCase = (preimage: unknown): unknown => (typeof preimage === 'string' ? preimage.toLowerCase() : preimage);

function requestFor({ text, paymentHash, amountMsat, payTo }: QuotedInvoice): object {
  const network = Object.entries(NETWORKS).find(([currency]) => text.startsWith(`ln${currency}`))?.[1];
  return {
    amount: (amountMsat / MSAT_PER_SAT).toString(),
    currency: 'sat',
    methodDetails: {
      ...{ invoice: text, paymentHash: Buffer.from(paymentHash).toString('hex') },
      ...(network && { network }),
    },
    recipient: payTo,
  };
}
