import { hash } from 'node:crypto';
import { MSAT_PER_SAT } from '../../../lib/units.ts';
import { own } from '../../../lib/untrusted.ts';
import { type ChallengeSecrets, LATE_SECONDS } from '../../http-auth.ts';
import type { AuthScheme, Credential, Fields, QuotedInvoice } from '../../protocol.ts';
import { PaymentRefused } from '../../refusal.ts';
import {
  type Challenge,
  type ChallengeTerms,
  challengeLine,
  encodeCanonical,
  INTENT,
  isOurChallenge,
  readCredential,
  receiptFields,
  withId,
  writeTime,
} from './challenge.ts';

// Method `lightning`, intent `charge`. The challenge repeats the invoice, and the node has signed the request's hash
// into it. So a challenge buys one answer to one request, without any state of this protocol.

const METHOD = 'lightning';
const PREIMAGE = /^[0-9a-f]{64}$/;

/** Names of networks, by the currency that follows `ln` in an invoice. A longer one stands before its beginning. */
const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' };

export function createMppLightning(secrets: ChallengeSecrets, realm: string): AuthScheme {
  const termsOf = (invoice: QuotedInvoice): ChallengeTerms => ({
    realm,
    method: METHOD,
    intent: INTENT,
    request: encodeCanonical(requestFor(invoice)),
    expires: writeTime(invoice.expiresAt),
  });

  return {
    protocol: 'mpp',
    names: ['payment'],
    read: (authorization): Credential => {
      const { challenge, payload, request } = readCredential(authorization, METHOD);
      const isSigned = isOurChallenge(secrets, challenge);
      const preimage = lowerCase(payload.preimage);
      const details = request.methodDetails;
      // The key may have changed or be lost. What the preimage opens may be ours all the same; the rail decides.
      if (!isSigned && !opens(preimage, own(details, 'paymentHash'))) throw new PaymentRefused('invalid_challenge');
      // The challenge's own expiry does not matter: the rail judges the invoice's times; a claimed proof stays good.
      return {
        protocol: 'mpp',
        accepted: null,
        challengeId: challenge.id,
        payload: { invoice: own(details, 'invoice'), preimage },
        identifier: () => null,
        answered: { isSigned, isFor: (issued) => hasTerms(challenge, termsOf(issued)), lateSeconds: LATE_SECONDS },
      };
    },
    challenge: (invoice): string => challengeLine(withId(secrets.current, termsOf(invoice))),
    receipt: (...sold): Fields => receiptFields(METHOD, ...sold),
  };
}

/** Some clients write upper case. A buyer who has paid must not be refused for that. */
const lowerCase = (preimage: unknown): unknown => (typeof preimage === 'string' ? preimage.toLowerCase() : preimage);

function opens(preimage: unknown, paymentHash: unknown): boolean {
  const isPreimage = typeof preimage === 'string' && PREIMAGE.test(preimage);
  return isPreimage && hash('sha256', Buffer.from(preimage, 'hex')) === paymentHash;
}

/** The id is not compared, because the key that made it may be lost. */
function hasTerms({ id: _id, ...shown }: Challenge, terms: ChallengeTerms): boolean {
  const names = Object.keys({ ...shown, ...terms }) as (keyof ChallengeTerms)[];
  return names.every((name) => shown[name] === terms[name]);
}

function requestFor({ text, paymentHash, amountMsat, payTo }: QuotedInvoice): object {
  const network = Object.entries(NETWORKS).find(([currency]) => text.startsWith(`ln${currency}`))?.[1];
  return {
    amount: (amountMsat / MSAT_PER_SAT).toString(),
    currency: 'sat',
    methodDetails: {
      invoice: text,
      paymentHash: Buffer.from(paymentHash).toString('hex'),
      ...(network && { network }),
    },
    recipient: payTo,
  };
}
