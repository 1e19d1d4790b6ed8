import type { PaymentRequired } from '@x402/core/types';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { IDENTIFIER_EXTENSION } from '../../payment-identifier.ts';
import type { SoldTool, ToolDemand } from '../../protocol.ts';
import { toolBazaarExtension } from './tool-bazaar.ts';

/** Makes a tool's demand for payment. It is the same for every call, except for what is offered and the error. */
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
