import type { Endpoint } from '../../../catalogue/endpoint.ts';
import type { SoldTool } from '../../protocol.ts';
import { discoveryForm } from './bazaar.ts';

/**
 * x402's discovery extension for a tool: how it is called and an example of what it answers, so that a facilitator that sees its payments
 * can list it. The form is the one that the official `bazaar` extension makes for MCP.
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
  const info = { input, output: { type: 'json', example: endpoint.example.result } };
  return {
    bazaar: discoveryForm(info, { properties, required: ['type', 'toolName', 'inputSchema'] }, { type: 'object' }),
  };
}
