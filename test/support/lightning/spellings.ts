import type { Answer } from '../service/service.ts';
import { type Challenge, challengeIn, credentialOf } from '../usdc/mpp-buyer.ts';
import { offeredBy, proofHeader } from './lightning-buyer.ts';

/** What a Lightning 402 asks for in L402 and MPP. */
export interface Asked {
  readonly invoice: string;
  readonly macaroon: string;
  readonly challenge: Challenge;
}

const L402 = /^L402 macaroon="([^"]+)", invoice="([^"]+)", Payment /;

/** Reads both lines of WWW-Authenticate, which Node joins. Empty where the order is another. */
export function askedBy(answer: Answer): Asked {
  const [, macaroon = '', invoice = ''] = L402.exec(String(answer.headers['www-authenticate'])) ?? [];
  return { invoice, macaroon, challenge: challengeIn(answer) };
}

/** The protocols in which a proof of a Lightning payment can be presented. */
export const SPELLINGS = ['x402', 'l402', 'mpp'] as const;

/** The header fields that present a proof, in each protocol. */
export type Spellings = Readonly<Record<(typeof SPELLINGS)[number], Record<string, string>>>;

/** The three spellings of the proof that a 402's invoice was paid. */
export function spellingsOf(answer: Answer, preimage: string): Spellings {
  const { macaroon, challenge } = askedBy(answer);
  return {
    x402: { 'payment-signature': proofHeader(offeredBy(answer), preimage) },
    l402: { authorization: `L402 ${macaroon}:${preimage}` },
    mpp: { authorization: credentialOf(challenge, { preimage }) },
  };
}
