import type { Endpoint } from '../catalogue/endpoint.ts';

/**
 * The name of an entry's tool: its access and the words of its path, for example `paid_fees_forecast`.
 * It follows from the path alone, so it is as stable as the route. One name serves both rails, because a Lightning invoice binds the name.
 */
export function toolName({ access, path }: { access: Endpoint<never>['access']; path: string }): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return [access, ...words].join('_').toLowerCase();
}

/** The URL of a tool, as x402's MCP transport names a paid resource. */
export function toolUrl(name: string): string {
  return `mcp://tool/${name}`;
}
