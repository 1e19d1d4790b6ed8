import { readAuthChallenges, readPaymentChallenges } from '../challenges.ts';
import { type Env, namesPayer } from '../keys.ts';
import type { Call, Limits } from '../port.ts';
import { readChannel } from './channel-offer.ts';
import { readExact } from './exact.ts';
import { readGateway } from './gateway.ts';
import { invoiceOffer, readL402Offer, readMppInvoice } from './l402.ts';
import { readLightning } from './lightning.ts';
import { readMpp } from './mpp.ts';
import { type Asked, BadOffer, type Fault, type Offer, Refused } from './way.ts';

/** What decides between the ways that a 402 offers. */
export type Wish = Pick<Limits, 'rail' | 'protocol' | 'via'>;

type Found = readonly Offer[] | Fault | null;

/**
 * Picks how a 402 is paid, and returns the offers of that way in the seller's order. Lightning comes before USDC,
 * unless
 * only a key for USDC is set. Of the protocols the one comes first whose offer says most: x402 binds the request, MPP
 * states amount and network, L402 only names an invoice. Throws Refused when nothing on offer is what the buyer wants,
 * with what is wrong with each offer that was left out.
 */
export function pickOffers(asked: Asked, call: Call, wish: Wish, env: Env): readonly Offer[] {
  const faults: string[] = [];
  const sound = (read: () => Found): readonly Offer[] => {
    const found = orFault(read);
    if (found && 'fault' in found) faults.push(found.fault);
    return found && !('fault' in found) ? found : [];
  };
  for (const read of readersOf(asked, call, { wish, env, faults })) {
    const offers = sound(read);
    if (offers.length > 0) return offers;
  }
  if (wish.via === 'channel') throw new Refused('no-way', `${faults[0] ?? NO_CHANNEL}; nothing was signed`);
  const what = { usdc: 'in USDC', lightning: 'over Lightning' };
  const how = [wish.rail && what[wish.rail], wish.protocol && `by ${wish.protocol}`].filter(Boolean).join(' ');
  const text = [`nothing on offer is paid ${how || 'in a way that is known here'}`, ...new Set(faults)].join('; ');
  throw new Refused('no-way', text);
}

const NO_CHANNEL = 'nothing on offer is paid over a payment channel (batch-settlement)';

interface Choice {
  readonly wish: Wish;
  readonly env: Env;
  /** Gets what is wrong with challenges that cannot be read. */
  readonly faults: string[];
}

/** The ways that the buyer takes, the preferred first. */
function readersOf(asked: Asked, call: Call, { wish, env, faults }: Choice): readonly (() => Found)[] {
  const takes = (protocol: NonNullable<Wish['protocol']>) => wish.protocol === null || wish.protocol === protocol;
  if (wish.via === 'channel') return [() => readChannel(asked)];
  const gateway = () => readGateway(asked, env.GATEWAY_WALLET_ADDRESS);
  if (wish.via === 'gateway') return [gateway];
  const challenges = readAuthChallenges(asked.headers.get('www-authenticate') ?? '');
  const read = takes('mpp') ? readPaymentChallenges(challenges) : [];
  const payments = read.flatMap((one) => ('fault' in one ? [] : [one]));
  faults.push(...read.flatMap((one) => ('fault' in one ? [one.fault] : [])));
  const inSats = [
    ...(takes('x402') ? [() => readLightning(asked, call)] : []),
    () => invoiceOffer(readMppInvoice(payments)),
    ...(takes('l402') ? [() => invoiceOffer(readL402Offer(challenges))] : []),
  ];
  const hasGateway = takes('x402') && (asked.headers.get('payment-required') ?? '') !== '';
  const inUsdc = [
    ...(takes('x402') ? [() => readExact(asked)] : []),
    () => readMpp(payments),
    // Where it is the only way in USDC. A 402 without one of its entries is told by the faults before it.
    ...(hasGateway ? [() => noFault(gateway)] : []),
  ];
  if (wish.rail !== null) return wish.rail === 'usdc' ? inUsdc : inSats;
  const hasUsdcOnly = !namesPayer(env) && Boolean(env.BUYER_PRIVATE_KEY || env.BUYER_PRIVATE_KEY_FILE);
  return hasUsdcOnly ? [...inUsdc, ...inSats] : [...inSats, ...inUsdc];
}

function noFault(read: () => Found): Found {
  const found = read();
  return found && 'fault' in found ? null : found;
}

function orFault(read: () => Found): Found {
  try {
    return read();
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

/** Throws a fault of an offer as a refusal that says what was not done. */
export function refusedOffer(error: unknown, done: string): never {
  if (error instanceof BadOffer) throw new Refused('bad-offer', `${error.message}; nothing was ${done}`);
  throw error;
}
