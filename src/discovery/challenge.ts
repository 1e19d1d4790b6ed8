import { BadParameter } from '../errors.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import { isObject, own } from '../lib/untrusted.ts';

// How a seller's route is paid, from its untrusted 402: `readChallenge` reads it as a stock client would, `readOffer`
// leaves out what such a client could not pay, and `readAccepts` reads the terms on our chain, a catalogue's too.

export interface Challenge {
  readonly version: 1 | 2;
  readonly accepts: readonly unknown[];
  /** From the header, or from the body in version 1. */
  readonly whole: unknown;
}

interface ChallengeAnswer {
  readonly headers: Readonly<Record<string, string>>;
  read(maxBytes: number): Promise<Buffer>;
}

export interface Payable {
  /** A CAIP-2 name. */
  readonly network: string;
  readonly usdc: string;
}

/** The ways to pay a seller, from all entries of `accepts`. */
export interface Terms {
  readonly rail: 'direct' | 'gateway';
  readonly priceUsd: string;
  readonly payTo: string;
  /** The price on our chain without the gateway. Null without the gateway, or when it is the only way there. */
  readonly plainPriceUsd: string | null;
  readonly networks: string[];
  readonly plainNetworks: string[];
}

/** Of a body with version 1's terms: a few KiB, with schemas some more. */
const MAX_BODY_BYTES = 64 * 1024;
/** As stock clients accept it: nobody can pay a challenge that its client cannot decode. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const LIGHTNING = /^lnbtc:/;
const NON_ZERO = /^(?!0x0{40}$)/;

const BAD_HEADER = 'its PAYMENT-REQUIRED header is no base64 JSON of x402 version 2';
const NO_HEADER = 'its 402 has version 2 of x402 in the body alone; clients look for it in the PAYMENT-REQUIRED header';
const NEITHER = 'its 402 has neither a PAYMENT-REQUIRED header (x402 version 2) nor a JSON body of x402 version 1';

/** Reads version 2 from the header, version 1 from the body. Throws `unreadable_challenge`. */
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

/** The terms on our chain. Throws `not_payable_here` without an `exact` entry in USDC there. */
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

/** Whether a stock client finds the amount in its version's member, a recipient, and the domain to sign for. */
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

/** Permit2 signs for a contract that every client knows, EIP-3009 for the token's domain, which the entry must name. */
function isPlain(method: unknown, isNamed: boolean): boolean {
  return method === 'permit2' || (method === 'eip3009' && isNamed);
}

/** False for an object: its own `toString` may be anything. */
function isText(value: unknown, form: RegExp): boolean {
  return typeof value === 'string' && form.test(value);
}

function withoutAmount(entry: unknown): unknown {
  return isObject(entry) ? { ...entry, amount: undefined } : entry;
}

function isLightning(entry: unknown): boolean {
  return isText(own(entry, 'network'), LIGHTNING);
}

/** Circle's name for a batched payment from a deposit (CIRCLE_BATCHING_NAME of its x402-batching library). */
const GATEWAY = 'GatewayWalletBatched';
const MAX_ACCEPTS = 50;
const NETWORK = /^[A-Za-z0-9][\w:.-]{0,63}$/;

interface Offer {
  readonly network: string;
  readonly isGateway: boolean;
  /** Null: it is not payable in USDC on our chain. */
  readonly ours: { readonly units: bigint; readonly payTo: string } | null;
}

/** Reads `accepts` of version 1 or 2. Null when no entry is an `exact` payment in USDC on our chain. */
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
    // Without our chain for a gateway entry: its `direct` member says whether it can be paid there plainly.
    plainNetworks: isGateway ? plainNetworks.filter((network) => network !== payable.network) : plainNetworks,
  };
}

function offerIn(accept: unknown, payable: Payable): Offer | null {
  const network = own(accept, 'network');
  if (own(accept, 'scheme') !== 'exact' || typeof network !== 'string' || !NETWORK.test(network)) return null;
  const isGateway = isGatewayExtra(own(accept, 'extra'));
  return { network, isGateway, ours: network === payable.network ? readAmount(accept, payable.usdc) : null };
}

function isGatewayExtra(extra: unknown): boolean {
  return own(extra, 'name') === GATEWAY;
}

/** An amount in base units of USDC, and who gets it. No price has more than fifteen digits. */
function readAmount(accept: unknown, usdc: string): Offer['ours'] {
  const amount = own(accept, 'amount') ?? own(accept, 'maxAmountRequired');
  const [asset, payTo] = [own(accept, 'asset'), own(accept, 'payTo')];
  if (typeof asset !== 'string' || asset.toLowerCase() !== usdc.toLowerCase()) return null;
  if (typeof payTo !== 'string' || !ADDRESS.test(payTo)) return null;
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

/** Why a URL is not listed, or a listed route failed its call. The codes are stable. */
type RefusalCode = 'https_only' | 'own_origin' | 'no_402' | 'unreadable_challenge' | 'not_payable_here';

/** 400; `detail` tells the seller what to change. */
export function refusal(code: RefusalCode, detail: string): BadParameter {
  return new BadParameter([{ path: 'url', message: detail }], code);
}
