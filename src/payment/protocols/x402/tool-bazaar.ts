import type { Endpoint } from '../../../catalogue/endpoint.ts';
import type { SoldTool } from '../../protocol.ts';

/**
 * x402's discovery extension for a tool: how to call it, and an example of its answer. A facilitator that sees the tool's payments can list the tool
 * from it. It has the form of the official `bazaar` extension for MCP.
 */
export function toolBazaarExtension(
  endpoint: Pick<Endpoint<never>, 'example' | 'summary'>,
  { name, inputSchema }: SoldTool,
) {
  const input = {
    type: 'mcp',
    toolName: name,
    description: endpoint.summary,
    transport: 'streamable-http',
    inputSchema,
    example: endpoint.example.params,
  };
  const properties = {
    type: { type: 'string', const: 'mcp' },
    toolName: { type: 'string' },
    description: { type: 'string' },
    transport: { type: 'string', enum: ['streamable-http'] },
    inputSchema: { type: 'object' },
    example: { type: 'object' },
  };
  const required = ['type', 'toolName', 'inputSchema'];
  return {
    bazaar: {
      info: { input, output: { type: 'json', example: endpoint.example.result } },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          input: { type: 'object', properties, required, additionalProperties: false },
          output: {
            type: 'object',
            properties: { type: { type: 'string' }, example: { type: 'object' } },
            required: ['type'],
          },
        },
        required: ['input'],
      },
    },
  };
}
