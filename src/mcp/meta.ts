import { own } from '../lib/own-property.ts';
import { encodeHeader } from '../payment/protocols/x402/header.ts';

/** Where x402's MCP transport carries a payment: in the call's `_meta`. */
export const PAYMENT = 'x402/payment';
/** Where it carries the receipt: in the result's `_meta`. */
export const RECEIPT = 'x402/payment-response';
/** Ours: which rail a call that carries no payment yet wants to be offered, in its `_meta`. */
export const RAIL = 'percall/rail';

/** What a payment is judged by. A client also echoes the resource and every extension of the challenge, which say nothing and may be large. */
const JUDGED = ['x402Version', 'accepted', 'payload'] as const;
const IDENTIFIER = 'payment-identifier';

/**
 * A payment as PAYMENT-SIGNATURE would carry it, so that both transports are judged by the same code from the first byte on. What cannot be
 * written down becomes a header that is refused as unreadable.
 */
export function headerOf(payment: unknown): string {
  if (typeof payment !== 'object' || payment === null || Array.isArray(payment)) return '';
  const members: [string, unknown][] = JUDGED.map((key) => [key, own(payment, key)]);
  const identifier = own(own(payment, 'extensions'), IDENTIFIER);
  if (identifier !== undefined) members.push(['extensions', { [IDENTIFIER]: identifier }]);
  try {
    return encodeHeader(Object.fromEntries(members));
  } catch {
    // Only nesting beyond what the stack holds.
    return '';
  }
}
