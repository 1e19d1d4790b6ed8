import type { Endpoint } from '../../src/catalogue/endpoint.ts';
import { familiesOf } from '../../src/http/documents.ts';
import { SERVICE_VERSION } from '../../src/lib/service.ts';

/** What `mcp-publisher` sends to the MCP registry. The name's namespace is the host that the registry's proof is on. */
export function createServerJson(publicOrigin: string, catalogue: readonly Endpoint<never>[]) {
  const namespace = new URL(publicOrigin).hostname.split('.').reverse().join('.');
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: `${namespace}/percall`,
    title: 'percall',
    // The registry takes 100 characters.
    description: `Data by the call: ${[...familiesOf(catalogue).keys()].join(', ')}`,
    version: SERVICE_VERSION,
    websiteUrl: `${publicOrigin}/`,
    remotes: [{ type: 'streamable-http', url: `${publicOrigin}/mcp` }],
  };
}
