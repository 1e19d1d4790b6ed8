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
    description: describe([...familiesOf(catalogue).keys()]),
    version: SERVICE_VERSION,
    websiteUrl: `${publicOrigin}/`,
    remotes: [{ type: 'streamable-http', url: `${publicOrigin}/mcp` }],
  };
}

/** The registry takes so many characters. */
const MOST = 100;

/** Names as many families as there is room for. */
function describe(families: readonly string[]): string {
  const text = `Data by the call: ${families.join(', ')}`;
  return text.length <= MOST ? text : describe(families.slice(0, -1));
}
