import { own } from '../lib/own-property.ts';
import { type Payable, readAccepts, type Terms } from './accepts.ts';
import { refusal } from './market/market-refusals.ts';
import { isObject } from './market/market-text.ts';

/** A 402's terms as they came: untrusted. */
export interface Challenge {
  readonly version: 1 | 2;
  readonly accepts: readonly unknown[];
  /** The whole object: the header's, or the body's in version 1. */
  readonly whole: unknown;
}

/** The least of an answer that a challenge is read from. */
export interface ChallengeAnswer {
  readonly headers: Readonly<Record<string, string>>;
  read(maxBytes: number): Promise<Buffer>;
}

/** Version 1 put its terms into the body; honest ones take a few KiB, with schemas some more. */
const MAX_BODY_BYTES = 64 * 1024;
/** Base64 as stock clients take it: one that they cannot read cannot be paid. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const NOBODY = /^0x0{40}$/;

const BAD_HEADER = 'its PAYMENT-REQUIRED header is no base64 JSON of x402 version 2';
const NO_HEADER = 'its 402 has version 2 of x402 in the body alone; clients look for it in the PAYMENT-REQUIRED header';
const NEITHER = 'its 402 has neither a PAYMENT-REQUIRED header (x402 version 2) nor a JSON body of x402 version 1';

/**
 * Reads what a 402 asks: version 2 from the PAYMENT-REQUIRED header, version 1 from the body, which is read for nothing else.
 * Throws `unreadable_challenge` for what a stock client could not read either.
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
 * What a challenge asks on our chain; of what could not be paid by a stock client nothing counts.
 * Throws `not_payable_here` when no `exact` entry is left that our chain's USDC pays.
 */
export function readOffer({ version, accepts }: Challenge, payable: Payable): Terms {
  const sound = accepts.filter((entry) => own(entry, 'network') !== payable.network || isSound(entry, version));
  const offer = readAccepts(version === 1 ? sound.map(withoutAmount) : sound, payable);
  if (offer !== null) return offer;
  throw refusal('not_payable_here', `its 402 has no \`exact\` entry in USDC (${payable.usdc}) on ${payable.network}`);
}

/** Version 1 has no `amount`: its clients pay what `maxAmountRequired` says, whatever stands beside it. */
function withoutAmount(entry: unknown): unknown {
  return isObject(entry) ? { ...entry, amount: undefined } : entry;
}

/** 1. The amount stands where its version has it; 2. somebody is paid; 3. the domain that is signed for is named: the Gateway's, or the token's. */
function isSound(entry: unknown, version: 1 | 2): boolean {
  const extra = own(entry, 'extra');
  const method = own(extra, 'assetTransferMethod') ?? 'eip3009';
  const isNamed = [own(extra, 'name'), own(extra, 'version')].every((part) => typeof part === 'string' && part !== '');
  return (
    typeof own(entry, version === 1 ? 'maxAmountRequired' : 'amount') === 'string' &&
    !NOBODY.test(String(own(entry, 'payTo'))) &&
    (isGateway(extra) ? ADDRESS.test(String(own(extra, 'verifyingContract'))) : isPlain(method, isNamed))
  );
}

/** Permit2 signs for a contract that every client knows; EIP-3009 for the token's own domain. */
function isPlain(method: unknown, isNamed: boolean): boolean {
  return method === 'permit2' || (method === 'eip3009' && isNamed);
}

function isGateway(extra: unknown): boolean {
  return own(extra, 'name') === 'GatewayWalletBatched';
}
