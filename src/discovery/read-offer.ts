import { own } from '../lib/own-property.ts';
import { formatUnits } from '../lib/units.ts';
import type { Entry } from './entry.ts';
import { refusal } from './market-refusals.ts';

/** What an entry must be payable with here. */
export interface Terms {
  /** CAIP-2. */
  readonly network: string;
  /** Its USDC contract. */
  readonly asset: string;
}

/** What a seller asks, as far as it concerns buyers on our chain. */
export type Offer = Pick<Entry, 'priceUsd' | 'payTo' | 'rail' | 'networks' | 'plainNetworks'> & {
  /** What the same call costs when paid plainly, for one that is cheaper through the gateway. */
  readonly plainPriceUsd: string | null;
};

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
/** Sellers on every network there is name some twenty. */
const MAX_ACCEPTS = 50;
/** USDC's ERC-20 face. */
const USDC_DECIMALS = 6;
/** Base64 as stock clients take it: one that they cannot read cannot be paid. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const NOBODY = /^0x0{40}$/;
/** Up to a million million USD; nothing that is not plain digits. */
const AMOUNT = /^[1-9]\d{0,17}$/;
/** CAIP-2, or the single word of version 1. */
const NETWORK = /^[a-z0-9-]{2,32}(:[-_a-zA-Z0-9]{1,32})?$/;
const GATEWAY = 'GatewayWalletBatched';

/**
 * Reads what a 402 asks: version 2 from the PAYMENT-REQUIRED header, version 1 from the body, which is read for nothing else.
 * Throws `unreadable_challenge` for what a stock client could not read either.
 */
export async function readChallenge({ headers, read }: ChallengeAnswer): Promise<Challenge> {
  const header = headers['payment-required'];
  if (header !== undefined) return challengeOf(BASE64.test(header) ? decode(header) : null, 2, 'its PAYMENT-REQUIRED header is no base64 JSON of x402 version 2');
  const whole = parse((await read(MAX_BODY_BYTES)).toString('utf8'));
  const hint =
    own(whole, 'x402Version') === 2
      ? 'version 2 of x402 goes into the PAYMENT-REQUIRED header, where clients look for it; here it is in the body alone'
      : 'its 402 has neither a PAYMENT-REQUIRED header (x402 version 2) nor a JSON body of x402 version 1';
  return challengeOf(whole, 1, hint);
}

function challengeOf(whole: unknown, version: 1 | 2, fault: string): Challenge {
  const accepts = own(whole, 'accepts');
  if (own(whole, 'x402Version') !== version || !Array.isArray(accepts)) throw refusal('unreadable_challenge', fault);
  return { version, accepts: accepts.slice(0, MAX_ACCEPTS), whole };
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

interface Way {
  readonly amount: bigint;
  readonly payTo: string;
  readonly isGateway: boolean;
}

/**
 * What a challenge asks on our chain: the cheapest way, the plain one where both cost the same, because it needs no deposit.
 * Throws `not_payable_here` when no `exact` entry can be paid with our chain's USDC.
 */
export function readOffer({ version, accepts }: Challenge, terms: Terms): Offer {
  const ways = accepts.flatMap((entry) => wayOf(entry, version, terms) ?? []);
  const plain = cheapest(ways.filter(({ isGateway }) => !isGateway));
  const gateway = cheapest(ways.filter(({ isGateway }) => isGateway));
  const best = plain && (!gateway || plain.amount <= gateway.amount) ? plain : gateway;
  if (!best) {
    throw refusal('not_payable_here', `its 402 has no \`exact\` entry in USDC (${terms.asset}) on ${terms.network}`);
  }
  return {
    priceUsd: usd(best.amount),
    payTo: best.payTo,
    rail: best.isGateway ? 'gateway' : 'direct',
    plainPriceUsd: best.isGateway && plain ? usd(plain.amount) : null,
    networks: networksOf(accepts),
    plainNetworks: networksOf(accepts.filter((entry) => own(own(entry, 'extra'), 'name') !== GATEWAY)),
  };
}

/** One entry as a way to pay here, or null when it is none that a stock client could take. */
function wayOf(entry: unknown, version: 1 | 2, { network, asset }: Terms): Way | null {
  const { scheme, network: on, asset: token, payTo, amount, extra } = fieldsOf(entry, version);
  if (scheme !== 'exact' || on !== network || String(token).toLowerCase() !== asset.toLowerCase()) return null;
  if (typeof payTo !== 'string' || !ADDRESS.test(payTo) || NOBODY.test(payTo)) return null;
  if (typeof amount !== 'string' || !AMOUNT.test(amount)) return null;
  const isGateway = own(extra, 'name') === GATEWAY;
  return isPayable(extra, isGateway) ? { amount: BigInt(amount), payTo, isGateway } : null;
}

function fieldsOf(entry: unknown, version: 1 | 2) {
  const of = (key: string) => own(entry, key);
  return {
    scheme: of('scheme'),
    network: of('network'),
    asset: of('asset'),
    payTo: of('payTo'),
    amount: of(version === 1 ? 'maxAmountRequired' : 'amount'),
    extra: of('extra'),
  };
}

/** A signature needs the domain it is made for: of the Gateway's wallet, or of the token; with Permit2 the contract is a known one. */
function isPayable(extra: unknown, isGateway: boolean): boolean {
  if (isGateway) return ADDRESS.test(String(own(extra, 'verifyingContract')));
  const method = own(extra, 'assetTransferMethod') ?? 'eip3009';
  const hasDomain = [own(extra, 'name'), own(extra, 'version')].every((part) => typeof part === 'string' && part !== '');
  return method === 'permit2' || (method === 'eip3009' && hasDomain);
}

function cheapest(ways: readonly Way[]): Way | undefined {
  return ways.reduce<Way | undefined>((best, way) => (best && best.amount <= way.amount ? best : way), undefined);
}

function networksOf(accepts: readonly unknown[]): string[] {
  const named = accepts.map((entry) => own(entry, 'network'));
  return [...new Set(named)].filter((name): name is string => typeof name === 'string' && NETWORK.test(name));
}

function usd(amount: bigint): string {
  return formatUnits(amount, USDC_DECIMALS);
}
