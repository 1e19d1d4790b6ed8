import { own } from '../../../lib/own-property.ts';
import type { ToolProtocol } from '../../protocol.ts';
import { decodePayment, encodeHeader } from './header.ts';
import { createToolChallenge } from './tool-challenge.ts';

/** What a payment is judged by. A client also echoes the resource and every extension of the challenge, which say nothing and may be large. */
const JUDGED = ['x402Version', 'accepted', 'payload'] as const;
const IDENTIFIER = 'payment-identifier';

/** x402 version 2 in a tool call. */
export const x402Tool: ToolProtocol = {
  read: (payment) => decodePayment(headerOf(payment)),
  prepare: createToolChallenge,
};

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
