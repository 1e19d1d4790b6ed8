import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequired } from '@x402/core/types';
import { type Answer, call } from './service.ts';

/** The headers that the transport demands of every POST. */
export const MCP_HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** The message that carries a tool call. */
export function callMessage(name: string, given?: object, meta?: object): object {
  const params = { name, ...(given && { arguments: given }), ...(meta && { _meta: meta }) };
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
}

/** The official client, connected. `call` returns results unchanged, failures included. */
export async function connectClient(origin: string, path = '/mcp') {
  const client = new Client({ name: 'test', version: '1.0.0' });
  // The SDK's own types contradict each other under exactOptionalPropertyTypes.
  await client.connect(new StreamableHTTPClientTransport(new URL(path, origin)) as unknown as Transport);
  return {
    client,
    call: async (name: string, given: Record<string, unknown> = {}, meta?: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: given, ...(meta && { _meta: meta }) })) as CallToolResult,
    close: () => client.close(),
  };
}

/** Sends one message over its own connection, from any loopback address. */
export function postMessage(origin: string, message: unknown, from?: string, path = '/mcp'): Promise<Answer> {
  const body = typeof message === 'string' ? message : JSON.stringify(message);
  return call(origin, path, { method: 'POST', headers: MCP_HEADERS, body, ...(from && { from }) });
}

/** The texts of a result, in their order. */
export function textsOf(result: CallToolResult): string[] {
  return result.content.map((content) => (content.type === 'text' ? content.text : ''));
}

/** The first text of a result. For an answer it is the reply's exact bytes. */
export function textOf(result: CallToolResult): string {
  return textsOf(result)[0] ?? '';
}

/** The demand for payment in a result. */
export function demandOf(result: CallToolResult): PaymentRequired {
  return result.structuredContent as unknown as PaymentRequired;
}
