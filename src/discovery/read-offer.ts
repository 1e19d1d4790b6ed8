import { own } from '../lib/untrusted.ts';
import { isGatewayExtra, type Payable, readAccepts, type Terms } from './accepts.ts';
import { refusal } from './market/market-refusals.ts';
import { isObject } from './market/market-text.ts';

/** A 402's terms as received: untrusted. */
export interface Challenge {
  readonly version: 1 | 2;
  readonly accepts: readonly unknown[];
  /** The whole object: from the header, or from the body in version 1. */
  readonly whole: unknown;
}

/** The parts of an answer from which a challenge is read. */
export interface ChallengeAnswer {
  readonly headers: Readonly<Record<string, string>>;
  read(maxBytes: number): Promise<Buffer>;
}

/** Version 1 puts its terms into the body. They take a few KiB, with schemas some more. */
const MAX_BODY_BYTES = 64 * 1024;
/** Base64 as stock clients accept it. A buyer cannot pay a challenge that its client cannot decode. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const LIGHTNING = /^lnbtc:/;
const NON_ZERO = /^(?!0x0{40}$)/;

const BAD_HEADER = 'its PAYMENT-REQUIRED header is no base64 JSON of x402 version 2';
const NO_HEADER = 'its 402 has version 2 of x402 in the body alone; clients look for it in the PAYMENT-REQUIRED header';
const NEITHER = 'its 402 has neither a PAYMENT-REQUIRED header (x402 version 2) nor a JSON body of x402 version 1';

/**
 * Reads the terms of a 402: version 2 from the PAYMENT-REQUIRED header, version 1 from the body.
 * Throws `unreadable_challenge` when a stock client could not read them either.
 */
export async function readChallenge({ headers, read }: ChallengeAnswer): Promise<Challenge> {
  const header = headers['payment-required'];
  if (header !== undefined) return challengeOf(BASE64.test(header) ? decode(header) : null, 2, BAD_HEADER);
  const whole = parse((await read(MAX_BODY_BYTES)).toString('utf8'));
  return challengeOf(whole, 1, own(whole, 'x402Version') === 2 ? NO_HEADER : NEITHER);
}

function challengeOf(whole: unknown, version: 1 | 2, fault: string): Challenge {
  const accepts = own(whole, 'accepts');
  if (own(whole, 'x402Version') !== version || !Array.isArray(accepts)) throw refusal('unreadable_challenge', fault);
  return { version, accepts, whole };
}

function decode(base64: string): unknown {
  return parse(Buffer.from(base64, 'base64').toString('utf8'));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * The terms of a challenge on our chain. Entries that a stock client could not pay are ignored.
 * Throws `not_payable_here` when no `exact` entry in USDC on our chain is left.
 */
export function readOffer({ version, accepts }: Challenge, payable: Payable): Terms {
  const sound = accepts.filter((entry) => own(entry, 'network') !== payable.network || isPayable(entry, version));
  const offer = readAccepts(version === 1 ? sound.map(withoutAmount) : sound, payable);
  if (offer !== null) return offer;
  const needed = `\`exact\` entry in USDC (${payable.usdc}) on ${payable.network}`;
  throw refusal(
    'not_payable_here',
    accepts.some(isLightning)
      ? `its 402 can be paid over Lightning, and the market lists and prices what can be paid in USDC: add an ${needed}`
      : `its 402 has no ${needed}`,
  );
}

/** Whether an entry asks for a Lightning payment. */
function isLightning(entry: unknown): boolean {
  return isText(own(entry, 'network'), LIGHTNING);
}

/** Removes `amount` from a version 1 entry, because clients of version 1 pay `maxAmountRequired`. */
function withoutAmount(entry: unknown): unknown {
  return isObject(entry) ? { ...entry, amount: undefined } : entry;
}

/**
 * Whether a stock client can pay an entry. The amount is in its version's member, a recipient is named, and so is the domain that is signed for: the
 * Gateway's or the token's.
 */
function isPayable(entry: unknown, version: 1 | 2): boolean {
  const extra = own(entry, 'extra');
  const method = own(extra, 'assetTransferMethod') ?? 'eip3009';
  const isNamed = [own(extra, 'name'), own(extra, 'version')].every((part) => typeof part === 'string' && part !== '');
  return (
    typeof own(entry, version === 1 ? 'maxAmountRequired' : 'amount') === 'string' &&
    isText(own(entry, 'payTo'), NON_ZERO) &&
    (isGatewayExtra(extra) ? isText(own(extra, 'verifyingContract'), ADDRESS) : isPlain(method, isNamed))
  );
}

/** Whether a seller's value is a text of this form. An object is never turned into one: its own `toString` may be anything. */
function isText(value: unknown, form: RegExp): boolean {
  return typeof value === 'string' && form.test(value);
}

/** Permit2 signs for a contract that every client knows. EIP-3009 signs for the token's own domain, which the entry must name. */
function isPlain(method: unknown, isNamed: boolean): boolean {
  return method === 'permit2' || (method === 'eip3009' && isNamed);
}
