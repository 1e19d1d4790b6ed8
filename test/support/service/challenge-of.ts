import type { Offer } from '../../../src/payment/checkout.ts';

/** Returns the PAYMENT-REQUIRED value that an offer makes for a request target. */
export function challengeOf(offer: Offer): (target: string, error?: string) => string {
  return (target, error) => {
    const { fields } = offer.demand({ method: 'GET', target, fault: null, refusal: null }, error);
    return String(fields.find(([name]) => name === 'payment-required')?.[1] ?? '');
  };
}
