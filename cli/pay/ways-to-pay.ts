import { type InvoiceOffer, readL402Offer, readMppInvoice } from '../lightning/invoice-offer.ts';
import { type LightningOffer, readLightningOffer } from '../lightning/lightning-offer.ts';
import { readAuthChallenges } from './auth-challenges.ts';
import { type EvmOffer, readEvmOffer } from './mpp-evm-offer.ts';
import { readOffer } from './offer.ts';
import { type Fault, readPaymentChallenges } from './payment-challenge.ts';

/** The protocols in which a 402 may ask to be paid. */
export const PROTOCOLS = ['x402', 'l402', 'mpp'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** What the buyer wants. Null: any. */
interface Wish {
  readonly rail: 'usdc' | 'lightning' | null;
  readonly protocol: Protocol | null;
}

/** The way in which a 402 is paid. */
export type Way =
  | { readonly kind: 'x402-lightning'; readonly offer: LightningOffer }
  | { readonly kind: 'invoice'; readonly offer: InvoiceOffer }
  | { readonly kind: 'x402-usdc'; readonly header: string }
  | { readonly kind: 'mpp-usdc'; readonly offer: EvmOffer };

/**
 * Picks how a 402 is paid. Lightning comes before USDC. Of the protocols the one comes first whose offer says most: x402 binds the request, MPP states amount
 * and network, L402 only names an invoice. Throws when nothing on offer is what the buyer wants, with what is wrong with each offer that was left out.
 */
export function pickWay(headers: Headers, wish: Wish): Way {
  const takes = (protocol: Protocol) => wish.protocol === null || wish.protocol === protocol;
  const x402 = takes('x402') ? headers.get('payment-required') : null;
  const challenges = readAuthChallenges(headers.get('www-authenticate') ?? '');
  const read = takes('mpp') ? readPaymentChallenges(challenges) : [];
  const payments = read.flatMap((one) => ('fault' in one ? [] : [one]));
  const faults = read.flatMap((one) => ('fault' in one ? [one.fault] : []));
  const sound = <T extends object>(offer: T | Fault | null): T | null => {
    if (offer && 'fault' in offer) faults.push(offer.fault);
    return offer && !('fault' in offer) ? offer : null;
  };
  if (wish.rail !== 'usdc') {
    const offer = x402 === null ? null : sound(tryLightning(x402));
    if (offer) return { kind: 'x402-lightning', offer };
    const invoice = sound(readMppInvoice(payments)) ?? (takes('l402') ? sound(readL402Offer(challenges)) : null);
    if (invoice) return { kind: 'invoice', offer: invoice };
  }
  if (wish.rail !== 'lightning') {
    const usdc = x402 === null ? null : sound(tryUsdc(x402));
    if (usdc) return { kind: 'x402-usdc', ...usdc };
    const evm = sound(readEvmOffer(payments));
    if (evm) return { kind: 'mpp-usdc', offer: evm };
  }
  const what = { usdc: 'in USDC', lightning: 'over Lightning' };
  const how = [wish.rail && what[wish.rail], wish.protocol && `by ${wish.protocol}`].filter(Boolean).join(' ');
  throw new Error([`nothing on offer is paid ${how || 'in a way that is known here'}`, ...faults].join('; '));
}

const tryLightning = (header: string): LightningOffer | Fault | null => orFault(() => readLightningOffer(header));

/** The header, where one of its entries can be paid in USDC. */
const tryUsdc = (header: string): { readonly header: string } | Fault =>
  orFault(() => {
    readOffer(header);
    return { header };
  });

function orFault<T>(read: () => T): T | Fault {
  try {
    return read();
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}
