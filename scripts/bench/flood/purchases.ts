import { type Answer, ask, type Challenge } from './ask.ts';
import { ANSWER_TIMEOUT_MS, type Purchase } from './buyer.ts';
import { type Requirement, signedPayment } from './payments.ts';

/** What is bought, and from where. */
export interface Counter {
  readonly origin: string;
  readonly path: string;
  /** The buyer's own address. */
  readonly from: string;
}

/** Reads a route's 402; throws when it gives none. */
export async function readChallenge(counter: Counter): Promise<Challenge> {
  const { status, challenge } = await ask({ ...counter, timeoutMs: ANSWER_TIMEOUT_MS });
  if (status !== 402 || !challenge) throw new Error(`${counter.path} answered ${status} without a challenge`);
  return challenge;
}

/** A call that is paid in USDC by this key, with a fresh payment each. */
export function usdcPurchase(counter: Counter, requirement: Requirement, privateKey: Uint8Array): Purchase {
  let header = signedPayment(requirement, privateKey);
  return {
    present: () => present(counter, header),
    renew: () => {
      header = signedPayment(requirement, privateKey);
    },
  };
}

interface LightningRequirement {
  readonly extra: { readonly invoice: string };
}

/** A call that is paid over Lightning: an invoice is asked for and paid, and its proof presented. What is paid is never paid again. */
export function lightningPurchase(counter: Counter, pay: (invoice: string) => Promise<string>): Purchase {
  let header: string | null = null;
  return {
    present: async () => {
      const started = performance.now();
      if (header === null) {
        const offer = await ask({ ...counter, timeoutMs: ANSWER_TIMEOUT_MS });
        const accepted = offer.challenge?.accepts[0] as LightningRequirement | undefined;
        if (offer.status !== 402 || !accepted) return offer;
        const preimage = await pay(accepted.extra.invoice);
        const payment = { x402Version: 2, accepted, payload: { preimage } };
        header = Buffer.from(JSON.stringify(payment)).toString('base64');
      }
      return { ...(await present(counter, header)), ms: performance.now() - started };
    },
    renew: () => {},
  };
}

function present(counter: Counter, header: string): Promise<Answer> {
  return ask({ ...counter, headers: { 'payment-signature': header }, timeoutMs: ANSWER_TIMEOUT_MS });
}
