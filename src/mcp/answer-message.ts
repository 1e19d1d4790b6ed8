import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  type Tool as Listed,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { SERVICE_VERSION } from '../lib/service.ts';

// The protocol's part of the server, by the official SDK: negotiation, headers, message forms and errors. `mount.ts`
// loads this file on demand.

/** Made once, because making one per message would cost more than most messages. */
const jsonSchemaValidator = new AjvJsonSchemaValidator();

interface Toolbox {
  readonly instructions: string;
  listed(): readonly Listed[];
  /** Null when there is no such tool; never rejects. */
  call(name: string): Promise<CallToolResult> | null;
}

/** Answers one request of MCP's streamable transport. Stateless: no session, one JSON answer and no stream. */
export async function answerMessage(request: Request, parsedBody: unknown, toolbox: Toolbox): Promise<Response> {
  const server = new Server(
    { name: 'percall', title: 'percall: data by the call', version: SERVICE_VERSION },
    { capabilities: { tools: {} }, instructions: toolbox.instructions, jsonSchemaValidator },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...toolbox.listed()] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const called = toolbox.call(params.name);
    if (!called)
      throw new McpError(
        ErrorCode.InvalidParams,
        `Unknown tool: ${params.name.slice(0, 100)}. tools/list names those that there are.`,
      );
    return called;
  });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    return await transport.handleRequest(request, { parsedBody });
  } finally {
    await server.close();
  }
}
