import { AppError, BadParameter, Unavailable } from '../errors.ts';
import { formatUnits } from '../lib/units.ts';
import { own } from '../lib/untrusted.ts';
import { ExchangeFailed } from '../upstream/client/failure.ts';
import { isObject } from './entry.ts';

/** The network and token in which a seller's route must be payable to be listed. */
export interface Payable {
  /** CAIP-2. */
  readonly network: string;
  /** The USDC contract. */
  readonly usdc: string;
}

/** The ways to pay a seller, read from all entries of `accepts`. */
export interface Terms {
  readonly rail: 'direct' | 'gateway';
  readonly priceUsd: string;
  readonly payTo: string;
  /**
   * The price of the same call without the gateway, on our chain. Null when the seller does not take the gateway, or takes nothing else on our chain.
   */
  readonly plainPriceUsd: string | null;
  readonly networks: string[];
  readonly plainNetworks: string[];
}

/** Circle's name for a batched payment from a deposit (CIRCLE_BATCHING_NAME of its x402-batching library). */
const GATEWAY = 'GatewayWalletBatched';
const USDC_DECIMALS = 6;
const MAX_ACCEPTS = 50;
const NETWORK = /^[A-Za-z0-9][\w:.-]{0,63}$/;

interface Offer {
  readonly network: string;
  readonly isGateway: boolean;
  /** Null when the entry is not payable in our USDC on our chain. */
  readonly ours: { readonly units: bigint; readonly payTo: string } | null;
}

/** Whether `extra` of an untrusted entry names a batched payment from a deposit. */
function isGatewayExtra(extra: unknown): boolean {
  return own(extra, 'name') === GATEWAY;
}

/** Reads untrusted x402 `accepts` of version 1 or 2. Null when no entry is an `exact` payment in USDC on our chain. */
export function readAccepts(accepts: unknown, payable: Payable): Terms | null {
  if (!Array.isArray(accepts)) return null;
  const offers = accepts.slice(0, MAX_ACCEPTS).flatMap((accept) => offerIn(accept, payable) ?? []);
  const gateway = cheapest(offers.filter(({ isGateway }) => isGateway));
  const plain = cheapest(offers.filter(({ isGateway }) => !isGateway));
  const main = gateway ?? plain;
  if (main === null) return null;
  const isGateway = gateway !== null;
  const networksOf = (some: readonly Offer[]) => [...new Set(some.map(({ network }) => network))];
  const plainNetworks = networksOf(offers.filter((offer) => !offer.isGateway));
  return {
    rail: isGateway ? 'gateway' : 'direct',
    priceUsd: formatUnits(main.units, USDC_DECIMALS),
    payTo: main.payTo,
    plainPriceUsd: isGateway && plain ? formatUnits(plain.units, USDC_DECIMALS) : null,
    networks: networksOf(offers),
    // A gateway entry leaves our chain out here. The entry's `direct` member says whether our chain can be paid without the gateway.
    plainNetworks: isGateway ? plainNetworks.filter((network) => network !== payable.network) : plainNetworks,
  };
}

function offerIn(accept: unknown, payable: Payable): Offer | null {
  const network = own(accept, 'network');
  if (own(accept, 'scheme') !== 'exact' || typeof network !== 'string' || !NETWORK.test(network)) return null;
  const isGateway = isGatewayExtra(own(accept, 'extra'));
  return { network, isGateway, ours: network === payable.network ? readAmount(accept, payable.usdc) : null };
}

/**
 * Reads an amount in base units of USDC. Version 1 calls it `maxAmountRequired`. More than fifteen digits are refused, because no price has so many.
 */
function readAmount(accept: unknown, usdc: string): Offer['ours'] {
  const amount = own(accept, 'amount') ?? own(accept, 'maxAmountRequired');
  const [asset, payTo] = [own(accept, 'asset'), own(accept, 'payTo')];
  if (typeof asset !== 'string' || asset.toLowerCase() !== usdc.toLowerCase()) return null;
  if (typeof payTo !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(payTo)) return null;
  if (typeof amount !== 'string' || !/^\d{1,15}$/.test(amount) || BigInt(amount) === 0n) return null;
  return { units: BigInt(amount), payTo };
}

function cheapest(offers: readonly Offer[]): NonNullable<Offer['ours']> | null {
  const ours = offers.flatMap((offer) => offer.ours ?? []);
  return ours.reduce<(typeof ours)[number] | null>(
    (least, next) => (least && least.units <= next.units ? least : next),
    null,
  );
}

/** A 402's terms as received: untrusted. */
export interface Challenge {
  readonly version: 1 | 2;
  readonly accepts: readonly unknown[];
  /** The whole object: from the header, or from the body in version 1. */
  readonly whole: unknown;
}

/** The parts of an answer from which a challenge is read. */
interface ChallengeAnswer {
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

/** Why a URL is not listed, or why a listed route failed its hourly call. The codes are stable. */
type RefusalCode = 'https_only' | 'own_origin' | 'no_402' | 'unreadable_challenge' | 'not_payable_here';

/** 400 for a URL that cannot be listed. `detail` tells its seller what to change. */
export function refusal(code: RefusalCode, detail: string): BadParameter {
  return new BadParameter([{ path: 'url', message: detail }], code);
}

/** The domain, or the whole market, has as many listings as allowed. A listing must be dropped first. */
export const HOST_FULL = new AppError(
  409,
  'host_full',
  'The registered domain of this host has as many listings as one may have; all names below it count, also where several owners share it.',
);
export const MARKET_FULL = new Unavailable('market_full', 'The market has as many listings as it accepts.', 3600);

/**
 * Converts a failed call to a named error: 502 for a fault of the seller's server or the network. An error that is named already is returned as it
 * is.
 */
export function namedFailure(error: unknown, host: string): unknown {
  if (!(error instanceof ExchangeFailed)) return error;
  return new AppError(502, codeOf(error), `${host}: ${error.message}`, { cause: error });
}

function codeOf({ message }: ExchangeFailed): string {
  if (/timed out/.test(message)) return 'timeout';
  return /too large|larger than/.test(message) ? 'too_large' : 'unreachable';
}
