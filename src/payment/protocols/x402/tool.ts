import type { PaymentRequired } from '@x402/core/types';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { own } from '../../../lib/untrusted.ts';
import type { SoldTool, ToolDemand, ToolProtocol } from '../../protocol.ts';
import { toolBazaarExtension } from './bazaar.ts';
import { decodePayment, encodeHeader, IDENTIFIER_EXTENSION } from './http.ts';

// x402 version 2 in a tool call: the payment is a member of `_meta`, the demand the content of an error.

/** What is checked. The resource and the extensions that a client also sends back are not needed and may be large. */
const CHECKED = ['x402Version', 'accepted', 'payload'] as const;
const IDENTIFIER = 'payment-identifier';

export const x402Tool: ToolProtocol = {
  read: (payment) => decodePayment(headerOf(payment)),
  prepare: createToolChallenge,
};

/** As PAYMENT-SIGNATURE would carry it: one check for both transports. Empty, and so refused, where it cannot be. */
export function headerOf(payment: unknown): string {
  if (typeof payment !== 'object' || payment === null || Array.isArray(payment)) return '';
  const members: [string, unknown][] = CHECKED.map((key) => [key, own(payment, key)]);
  const identifier = own(own(payment, 'extensions'), IDENTIFIER);
  if (identifier !== undefined) members.push(['extensions', { [IDENTIFIER]: identifier }]);
  try {
    return encodeHeader(Object.fromEntries(members));
  } catch {
    // Only nesting deeper than the stack can cause this.
    return '';
  }
}

/** The demand is equal for every call, except for what is offered and the error. */
function createToolChallenge(endpoint: Endpoint<never>, tool: SoldTool): ToolDemand {
  const resource = { url: tool.url, description: endpoint.summary, mimeType: 'application/json' };
  const extensions = { ...IDENTIFIER_EXTENSION, ...toolBazaarExtension(endpoint, tool) };
  return (accepts, error = 'Payment required'): PaymentRequired => ({
    x402Version: 2,
    error,
    resource,
    accepts: [...accepts],
    extensions,
  });
}
