import { createHash, randomBytes } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { own } from '../../../lib/untrusted.ts';
import { pathAndQuery } from '../../../lib/url.ts';
import { type ChallengeSecrets, paymentLines, twoPayments } from '../../http-auth.ts';
import { type Credential, createHint, type PreparedProtocol, type RequestMessage } from '../../protocol.ts';
import { PaymentRefused, type RefusalSentences } from '../../refusal.ts';
import {
  type Challenge,
  challengeLine,
  decodeJson,
  encodeCanonical,
  INTENT,
  isOurChallenge,
  nonceOf,
  problemOf,
  readCredential,
  receiptFields,
  withId,
  writeTime,
} from './challenge.ts';

// Method `evm`, intent `charge`. The payer's authorization has the challenge's hash as its nonce, and the challenge
// binds the request. So no challenge is stored, and one challenge buys one answer to one request.

const METHOD = 'evm';
const SCHEME = 'payment';
const TYPE = 'authorization';
/** USDC has six decimals on its ERC-20 face. */
const DECIMALS = 6;
/** How long a challenge may be answered, and clients sign. Short: a payment without evidence is unknown until then. */
const CHALLENGE_SECONDS = 600;
/** How long after a start the last secret is accepted: longer than a challenge lives. */
const PREVIOUS_SECONDS = 3600;
const NONCE_BYTES = 16;
const HOW_TO_PAY = 'pay with any MPP client that has the method evm, and repeat the request with its credential.';
const OTHER_MOUNT = 'x402_not_here';

export const MPP_REFUSALS: RefusalSentences = {
  invalid_challenge_nonce:
    'The authorization does not answer the challenge: its nonce must be the Keccak-256 hash of the challenge’s ' +
    'id and realm.',
  challenge_expired: 'The answered challenge has expired. Answer the challenge of this 402.',
};

/** `realm`: the protection space, equal on every instance. */
export function createMppEvm(clock: Clock, secrets: ChallengeSecrets, realm: string): PreparedProtocol {
  const previousUntil = nowSeconds(clock) + PREVIOUS_SECONDS;

  function checkChallenge(
    challenge: Challenge,
    message: RequestMessage,
    requirement: PaymentRequirements,
    now: number,
  ) {
    const { current, previous } = secrets;
    const known = { current, previous: now < previousUntil ? previous : null };
    const isOurs = isOurChallenge(known, challenge) && challenge.realm === realm;
    if (!isOurs || requestIn(challenge) !== requestOf(message.method, message.url)) {
      throw new PaymentRefused('invalid_challenge');
    }
    // A challenge without a readable expiry is not open either.
    if (!(Date.parse(challenge.expires ?? '') >= now * 1000)) throw new PaymentRefused('challenge_expired');
    // The price or the recipient has changed since.
    if (challenge.request !== encodeTerms(requirement)) throw new PaymentRefused('invalid_challenge');
  }

  return {
    carries: (message) => paymentLines(message, [SCHEME]).length > 0,
    read(message): Credential {
      const [first, ...more] = paymentLines(message);
      const isAlone = message.headers['payment-signature'] === undefined;
      if (!first || !isAlone || more.some(({ text }) => text !== first.text)) throw twoPayments();
      const { challenge, payload } = readCredential(first.text, METHOD);
      return {
        protocol: 'mpp',
        accepted: null,
        challengeId: challenge.id,
        payload: payloadOf(payload, challenge),
        // The chain shows the nonce, which is a hash of the id. So only the buyer knows the id.
        identifier: () => ({
          hash: createHash('sha256').update(`mpp challenge ${challenge.id}`).digest(),
          isSingleUse: true,
        }),
        checkChallenge: (requirement, now) => checkChallenge(challenge, message, requirement, now),
      };
    },
    unpaidReason: ({ headers }) => (headers['payment-signature'] === undefined ? undefined : OTHER_MOUNT),
    prepare: (endpoint, [requirement], origin) => {
      if (!requirement) throw new Error(`${endpoint.path} has no terms`);
      const request = encodeTerms(requirement);
      const hint = createHint(endpoint, 'mpp', HOW_TO_PAY, origin);
      return ({ method, target, fault, refusal }, error) => {
        const opaque = { n: randomBytes(NONCE_BYTES).toString('base64url'), r: requestOf(method, target) };
        const challenge = withId(secrets.current, {
          realm,
          method: METHOD,
          intent: INTENT,
          request,
          opaque: encodeCanonical(opaque),
          expires: writeTime(nowSeconds(clock) + CHALLENGE_SECONDS),
        });
        return {
          fields: [['www-authenticate', challengeLine(challenge)]],
          body: JSON.stringify({ ...problemOf(error, hint({ fault, refusal })), challengeId: challenge.id }),
          contentType: 'application/problem+json',
        };
      };
    },
    needsOffer: () => false,
    receipt: (receipt, credential, at) => receiptFields(METHOD, receipt, credential, at, chainIdOf(receipt.network)),
  };
}

/** Throws PaymentRefused unless the payment is an authorization that answers this challenge. */
function payloadOf(payload: Credential['payload'], challenge: Challenge): Credential['payload'] {
  const { type, signature, from, to, value, validAfter, validBefore, nonce } = payload;
  if (type !== TYPE) throw new PaymentRefused('unsupported_payload_type');
  if (String(nonce).toLowerCase() !== nonceOf(challenge)) throw new PaymentRefused('invalid_challenge_nonce');
  return { signature, authorization: { from, to, value, validAfter, validBefore, nonce } };
}

function encodeTerms({ amount, asset, network, payTo }: PaymentRequirements): string {
  const methodDetails = { chainId: chainIdOf(network), credentialTypes: [TYPE], decimals: DECIMALS };
  return encodeCanonical({ amount, currency: asset, methodDetails, recipient: payTo });
}

function chainIdOf(network: string): number {
  return Number(network.split(':')[1]);
}

// A hash of the method, and of the target as received. HEAD is never sold: its challenge is for the target's GET.
function requestOf(method = '', target = ''): string {
  return createHash('sha256')
    .update(`${method === 'HEAD' ? 'GET' : method} ${pathAndQuery(target)}`)
    .digest('base64url');
}

function requestIn({ opaque }: Challenge): unknown {
  return own(decodeJson(opaque), 'r');
}
