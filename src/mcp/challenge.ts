import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { IDENTIFIER_EXTENSION } from '../payment/payment-identifier.ts';
import { bazaarExtension } from './bazaar.ts';
import { toolUrl } from './tool-name.ts';

/** Makes a tool's demand for payment: the same for every call, apart from what is offered and why. */
export function createChallenge(endpoint: Endpoint<never>, listed: Listed) {
  const resource = { url: toolUrl(listed.name), description: endpoint.summary, mimeType: 'application/json' };
  const extensions = { ...IDENTIFIER_EXTENSION, ...bazaarExtension(endpoint, listed) };
  return (accepts: PaymentRequirements[], error = 'Payment required'): PaymentRequired => ({
    x402Version: 2,
    error,
    resource,
    accepts,
    extensions,
  });
}
