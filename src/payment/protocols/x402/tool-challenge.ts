import type { PaymentRequired } from '@x402/core/types';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { IDENTIFIER_EXTENSION } from '../../payment-identifier.ts';
import type { SoldTool, ToolDemand } from '../../protocol.ts';
import { toolBazaarExtension } from './tool-bazaar.ts';

/** Makes a tool's demand for payment: the same for every call, apart from what is offered and why. */
export function createToolChallenge(endpoint: Endpoint<never>, tool: SoldTool): ToolDemand {
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
