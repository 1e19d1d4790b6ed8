import { anyObject, type Json, json } from './openapi-shapes.ts';

/** The addresses of the tools server. MCP defines the content of its messages. */
export const MCP_OPERATIONS: readonly { readonly url: string; readonly schema: Json }[] = [
  {
    url: '/mcp',
    schema: mcp('mcp', 'Every route as a tool, over MCP (streamable HTTP, stateless); priced ones in USDC.'),
  },
  {
    url: '/mcp/lightning',
    schema: mcp('mcpLightning', 'The same, with the tools that bitcoin buys: an unpaid call is offered an invoice.'),
  },
];

function mcp(operationId: string, summary: string): Json {
  return {
    operationId,
    summary,
    description:
      'A `paid_…` tool without payment returns `isError`, a sentence with the price, and x402\u2019s PaymentRequired; repeat the call with the payload in `_meta["x402/payment"]`, the receipt is in `_meta["x402/payment-response"]`.',
    querystring: {
      type: 'object',
      properties: {
        schemas: { type: 'string', enum: ['full'], description: 'Lists the schemas of the answers too' },
      },
    },
    body: {
      ...anyObject,
      description: 'One JSON-RPC 2.0 message',
      examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    },
    response: {
      200: json(anyObject, 'One JSON-RPC 2.0 message'),
      202: { description: 'A notification was taken' },
      400: json(anyObject, 'No JSON-RPC message, or several'),
      429: json(anyObject, 'Too many messages'),
    },
  };
}
