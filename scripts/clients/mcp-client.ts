import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequired } from '@x402/core/types';
import { createStockClient } from '../lib/stock-client.ts';
import { type Answer, type Client, type Errand, termsOf } from './client.ts';

/** The tool of the route, and where x402 has a payment and a receipt in a tool call. */
const TOOL = 'paid_fees_estimate';
const PAYMENT = 'x402/payment';
const RECEIPT = 'x402/payment-response';

/** The official MCP client, with the payload of the official x402 client in `_meta`. */
export const MCP_CLIENTS: readonly Client[] = [
  { name: '@modelcontextprotocol/sdk with @x402/core', package: '@modelcontextprotocol/sdk', buy },
];

async function buy(errand: Errand): Promise<Answer> {
  const mcp = new McpClient({ name: 'buyer', version: '1.0.0' });
  // The SDK's own types contradict each other under exactOptionalPropertyTypes.
  await mcp.connect(new StreamableHTTPClientTransport(new URL(errand.url)) as unknown as Transport);
  try {
    const call = { name: TOOL, arguments: {} };
    const asked = (await mcp.callTool(call)) as CallToolResult;
    const { accepts, ...demand } = asked.structuredContent as unknown as PaymentRequired;
    const payment = await createStockClient(termsOf(errand)).createPaymentPayload({ ...demand, accepts });
    const result = (await mcp.callTool({ ...call, _meta: { [PAYMENT]: payment } })) as CallToolResult;
    const receipt = Buffer.from(JSON.stringify(result._meta?.[RECEIPT] ?? {})).toString('base64');
    const [content] = result.content;
    const body = content?.type === 'text' ? content.text : '';
    return { status: result.isError ? 402 : 200, headers: new Headers({ 'payment-response': receipt }), body };
  } finally {
    await mcp.close();
  }
}
